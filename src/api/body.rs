//! Bodies of requests, within their limits of size, time and memory.
//!
//! Must never know: what a body holds.

use std::{sync::Arc, time::Duration};

use actix_web::{
    HttpRequest,
    http::header,
    web::{self, Bytes, BytesMut},
};
use futures_util::StreamExt;
use tokio::{sync::Semaphore, time::timeout};

use super::{
    decompress::{self, Decompress, SETTING},
    refusal::Refusal,
};
use crate::ingest::memory::{HeldMemory, IngestMemory};

/// Bytes to which the worker that received a body decompresses it itself, at most.
const IN_PLACE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a query that is sent as a form, and of a change as JSON.
pub(super) const FORM_BYTES_MAX: usize = 1 << 20;

/// A request's body, decompressed, with the memory it takes.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) bytes: Bytes,
    pub(super) memory: HeldMemory,
}

/// What the `Content-Type` says, in lower case and without parameters; `None` when there is none.
pub(super) fn media_type(request: &HttpRequest) -> Option<String> {
    let text = request.headers().get(header::CONTENT_TYPE)?.to_str().ok()?;
    let kind = text.split(';').next().unwrap_or_default().trim();
    Some(kind.to_ascii_lowercase())
}

/// Refuses a body that changes something and does not say that it is JSON: a form on another
/// site's page can send nothing else than forms and plain text.
pub(super) fn must_be_json(request: &HttpRequest) -> Result<(), Refusal> {
    match media_type(request).as_deref() {
        Some("application/json") => Ok(()),
        other => Err(Refusal::UnknownMediaType(format!(
            "Content-Type: {} is not known here; use application/json",
            other.unwrap_or("(none)")
        ))),
    }
}

/// Receives bodies within their bounds. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Bodies {
    limits: BodyLimits,
    memory: IngestMemory,
    timeout: Duration,
    /// A turn to decompress a body that becomes large.
    large: Arc<Semaphore>,
}

impl Bodies {
    /// Bodies of samples within `limits`, each within `timeout`, all within the memory.
    pub fn new(limits: BodyLimits, memory: IngestMemory, timeout: Duration) -> Self {
        Self { limits, memory, timeout, large: Arc::new(Semaphore::new(1)) }
    }

    /// Bytes that bodies take now.
    pub(super) fn used_bytes(&self) -> usize {
        self.memory.used_bytes()
    }

    /// Receives a body of something that is asked, of so many bytes at most, and undoes its
    /// `Content-Encoding`.
    pub(super) async fn receive_asked(
        &self,
        request: &HttpRequest,
        payload: web::Payload,
        bytes_max: usize,
    ) -> Result<Body, Refusal> {
        let limits = BodyLimits { request_bytes_max: bytes_max, decompressed_bytes_max: bytes_max };
        let received = self.receive_within(request, payload, "identity", limits).await;
        if let Err(Refusal::TooLarge { limit, setting: SETTING }) = received {
            return Err(Refusal::TooLong { limit });
        }
        received
    }

    /// Receives a change, in JSON.
    pub(super) async fn receive_change(
        &self,
        request: &HttpRequest,
        payload: web::Payload,
    ) -> Result<Body, Refusal> {
        must_be_json(request)?;
        self.receive_asked(request, payload, FORM_BYTES_MAX).await
    }

    /// Receives a body of samples and undoes its `Content-Encoding`, which without the header is
    /// `default_encoding`.
    pub(super) async fn receive(
        &self,
        request: &HttpRequest,
        payload: web::Payload,
        default_encoding: &'static str,
    ) -> Result<Body, Refusal> {
        self.receive_within(request, payload, default_encoding, self.limits).await
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
        let mut memory = self.memory.take(0)?;
        let limit = limits.decompressed_bytes_max;
        let own_max = limit.min(IN_PLACE_BYTES_MAX);
        match decompress(&body.bytes, own_max, &mut memory) {
            Err(Refusal::TooLarge { limit: reached, .. })
                if reached == own_max && own_max < limit => {}
            decompressed => return decompressed.map(|bytes| Body { bytes, memory }),
        }
        drop(memory);
        // On a thread that no other request waits for, one at a time.
        let turn = self.large.clone().acquire_owned().await;
        let mut memory = self.memory.take(0)?;
        let large = web::block(move || {
            let bytes = decompress(&body.bytes, limit, &mut memory)?;
            drop(turn);
            Ok(Body { bytes, memory })
        });
        large.await.map_err(|_| Refusal::Stopping)?
    }

    /// Memory is counted as the bytes come in, so that a client must send what it takes.
    async fn read(&self, mut payload: web::Payload, limit: usize) -> Result<Body, Refusal> {
        let mut memory = self.memory.take(0)?;
        let mut counted = 0;
        let mut bytes = BytesMut::new();
        while let Some(chunk) = payload.next().await {
            let chunk = chunk.map_err(|cause| Refusal::Malformed(format!("body: {cause}")))?;
            if bytes.len() + chunk.len() > limit {
                return Err(Refusal::TooLarge { limit, setting: SETTING });
            }
            bytes.extend_from_slice(&chunk);
            if bytes.capacity() > counted {
                memory.grow(bytes.capacity() - counted)?;
                counted = bytes.capacity();
            }
        }
        Ok(Body { bytes: bytes.freeze(), memory })
    }
}

/// How large one body may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLimits {
    /// Bytes as sent.
    pub request_bytes_max: usize,
    /// Bytes after decompression.
    pub decompressed_bytes_max: usize,
}
