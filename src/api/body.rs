//! Bodies of requests, within their limits of size, time and memory.
//!
//! Must never know: what a body contains.

use std::{sync::Arc, time::Duration};

use actix_web::{
    HttpRequest,
    http::header,
    web::{self, Bytes, BytesMut},
};
use futures_util::StreamExt;
use tokio::{sync::Semaphore, time::timeout};

use super::{
    decompress::{self, Decompress, PACKED_SETTING, SETTING},
    refusal::Refusal,
};
use crate::{
    ingest::memory::{IngestMemory, NoMemory, ReservedMemory},
    kept::LiveValue,
};

/// The largest body that an HTTP worker decompresses itself, in decompressed bytes.
const IN_PLACE_BYTES_MAX: usize = 1 << 20;
/// The size limit of queries sent as forms, and of changes sent as JSON.
pub(super) const FORM_BYTES_MAX: usize = 1 << 20;

/// A decompressed body, and the memory reserved for it.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) bytes: Bytes,
    pub(super) memory: ReservedMemory,
}

/// Returns the `Content-Type` in lower case, without parameters.
pub(super) fn media_type(request: &HttpRequest) -> Option<String> {
    let text = request.headers().get(header::CONTENT_TYPE)?.to_str().ok()?;
    let kind = text.split(';').next().unwrap_or_default().trim();
    Some(kind.to_ascii_lowercase())
}

/// Refuses a change whose `Content-Type` is not JSON: forms on pages of other sites cannot send
/// JSON with this type.
pub(super) fn must_be_json(request: &HttpRequest) -> Result<(), Refusal> {
    match media_type(request).as_deref() {
        Some("application/json") => Ok(()),
        other => Err(Refusal::UnknownMediaType(format!(
            "Content-Type: {} is not supported; use application/json",
            other.unwrap_or("(none)")
        ))),
    }
}

/// A receiver of bodies within their limits. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Bodies {
    limits: LiveValue<BodyLimits>,
    memory: IngestMemory,
    timeout: Duration,
    /// The turn to decompress a large body.
    large_turn: Arc<Semaphore>,
}

impl Bodies {
    /// Creates the receiver of bodies: `limits` are for samples, `timeout` is for each body, and
    /// all share the memory.
    pub fn new(limits: LiveValue<BodyLimits>, memory: IngestMemory, timeout: Duration) -> Self {
        Self { limits, memory, timeout, large_turn: Arc::new(Semaphore::new(1)) }
    }

    /// Reserves memory for a body that is already there.
    pub(super) fn reserve(&self, bytes: usize) -> Result<ReservedMemory, NoMemory> {
        self.memory.reserve(bytes)
    }

    /// Returns the bytes that bodies use now.
    pub(super) fn used_bytes(&self) -> usize {
        self.memory.used_bytes()
    }

    /// Receives the body of a query or a change, of at most `bytes_max` bytes, and decodes its
    /// `Content-Encoding`.
    pub(super) async fn receive_query(
        &self,
        request: &HttpRequest,
        payload: web::Payload,
        bytes_max: usize,
    ) -> Result<Body, Refusal> {
        let limits = BodyLimits::of(bytes_max);
        let received = self.receive_within(request, payload, "identity", limits).await;
        if let Err(Refusal::TooLarge { limit, setting: SETTING }) = received {
            return Err(Refusal::TooLong { limit });
        }
        received
    }

    /// Receives a change in JSON.
    pub(super) async fn receive_change(
        &self,
        request: &HttpRequest,
        payload: web::Payload,
    ) -> Result<Body, Refusal> {
        must_be_json(request)?;
        self.receive_query(request, payload, FORM_BYTES_MAX).await
    }

    /// Receives a body of samples and decodes its `Content-Encoding`. `default_encoding` applies
    /// without the header.
    pub(super) async fn receive(
        &self,
        request: &HttpRequest,
        payload: web::Payload,
        default_encoding: &'static str,
    ) -> Result<Body, Refusal> {
        self.receive_within(request, payload, default_encoding, *self.limits.get()).await
    }

    /// Receives a packed body, which takes much more memory when it is decoded.
    pub(super) async fn receive_packed(
        &self,
        request: &HttpRequest,
        payload: web::Payload,
    ) -> Result<Body, Refusal> {
        let BodyLimits { request_bytes_max, decompressed_bytes_max, packed_bytes_max } =
            *self.limits.get();
        let limits = BodyLimits {
            request_bytes_max: request_bytes_max.min(packed_bytes_max),
            decompressed_bytes_max: decompressed_bytes_max.min(packed_bytes_max),
            packed_bytes_max,
        };
        let received = self.receive_within(request, payload, "identity", limits).await;
        if let Err(Refusal::TooLarge { limit, setting: SETTING }) = received {
            return Err(Refusal::TooLarge { limit, setting: PACKED_SETTING });
        }
        received
    }

    async fn receive_within(
        &self,
        request: &HttpRequest,
        payload: web::Payload,
        default_encoding: &'static str,
        limits: BodyLimits,
    ) -> Result<Body, Refusal> {
        let header = request.headers().get(header::CONTENT_ENCODING);
        let encoding = header.map_or(Ok(default_encoding), |value| {
            value.to_str().map_err(|_| Refusal::UnknownEncoding("not text".to_owned()))
        })?;
        let reading = self.read(payload, limits.request_bytes_max);
        let received = timeout(self.timeout, reading).await;
        let body = received.map_err(|_| Refusal::TooSlow(self.timeout))??;
        let decompress: Decompress = match encoding {
            "identity" | "" => return Ok(body),
            "zstd" => decompress::zstd,
            "gzip" => decompress::gzip,
            "snappy" => decompress::snappy,
            other => return Err(Refusal::UnknownEncoding(other.to_owned())),
        };
        let mut memory = self.memory.reserve(0)?;
        let limit = limits.decompressed_bytes_max;
        let in_place_max = limit.min(IN_PLACE_BYTES_MAX);
        match decompress(&body.bytes, in_place_max, &mut memory) {
            Err(Refusal::TooLarge { limit: reached, .. })
                if reached == in_place_max && in_place_max < limit => {}
            decompressed => return decompressed.map(|bytes| Body { bytes, memory }),
        }
        drop(memory);
        // Large bodies are decompressed one at a time, on a thread that no other request waits for.
        let turn = self.large_turn.clone().acquire_owned().await;
        let mut memory = self.memory.reserve(0)?;
        let large = web::block(move || {
            let bytes = decompress(&body.bytes, limit, &mut memory)?;
            drop(turn);
            Ok(Body { bytes, memory })
        });
        large.await.map_err(|_| Refusal::Stopping)?
    }

    /// Reads a body. Memory is reserved as bytes arrive, so a client cannot reserve more than it
    /// sends.
    async fn read(&self, mut payload: web::Payload, limit: usize) -> Result<Body, Refusal> {
        let mut memory = self.memory.reserve(0)?;
        let mut reserved = 0;
        let mut bytes = BytesMut::new();
        while let Some(chunk) = payload.next().await {
            let chunk = chunk.map_err(|cause| Refusal::Malformed(format!("body: {cause}")))?;
            if bytes.len() + chunk.len() > limit {
                return Err(Refusal::TooLarge { limit, setting: SETTING });
            }
            bytes.extend_from_slice(&chunk);
            if bytes.capacity() > reserved {
                memory.grow(bytes.capacity() - reserved)?;
                reserved = bytes.capacity();
            }
        }
        Ok(Body { bytes: bytes.freeze(), memory })
    }
}

/// The size limits of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLimits {
    /// The maximum size as sent.
    pub request_bytes_max: usize,
    /// The maximum size after decompression.
    pub decompressed_bytes_max: usize,
    /// The maximum size of a packed body after decompression.
    pub packed_bytes_max: usize,
}

impl BodyLimits {
    /// Returns limits of this size for all bodies.
    pub fn of(bytes_max: usize) -> Self {
        Self {
            request_bytes_max: bytes_max,
            decompressed_bytes_max: bytes_max,
            packed_bytes_max: bytes_max,
        }
    }
}
