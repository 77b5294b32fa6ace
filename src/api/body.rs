//! Bodies of ingest requests, within their limits of size, time and memory.

use std::io::Read;

use actix_web::{
    HttpRequest,
    http::header,
    web::{self, Bytes, BytesMut},
};
use futures_util::StreamExt;
use tokio::{sync::Semaphore, time::timeout};

use super::{ApiParts, refusal::Refusal};
use crate::ingest::memory::{HeldMemory, IngestMemory};

/// The settings that bound the bodies of samples.
const SENT: &str = "ingest.request_bytes_max";
const DECOMPRESSED: &str = "ingest.decompressed_bytes_max";
/// Bytes that a body is decompressed to at first, at least.
const PIECE_BYTES: usize = 64 << 10;
/// Bytes that are decompressed before other requests of the worker have their turn.
const SLICE_BYTES: usize = 512 << 10;
/// Memory that one zstd stream may ask for: 8 MiB windows, as zstd's own command line.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
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

/// Receives a body of something that is asked, of so many bytes at most, and undoes its
/// `Content-Encoding`.
pub(super) async fn receive_asked(
    request: &HttpRequest,
    payload: web::Payload,
    parts: &ApiParts,
    bytes_max: usize,
) -> Result<Body, Refusal> {
    let limits = BodyLimits { request_bytes_max: bytes_max, decompressed_bytes_max: bytes_max };
    let received = receive_within(request, payload, parts, "identity", limits).await;
    if let Err(Refusal::TooLarge { limit, setting: SENT | DECOMPRESSED }) = received {
        return Err(Refusal::TooLong { limit });
    }
    received
}

/// Receives a body and undoes its `Content-Encoding`.
pub(super) async fn receive(
    request: &HttpRequest,
    payload: web::Payload,
    parts: &ApiParts,
) -> Result<Body, Refusal> {
    receive_as(request, payload, parts, "identity").await
}

/// The same, with the encoding that a body without the header has.
pub(super) async fn receive_as(
    request: &HttpRequest,
    payload: web::Payload,
    parts: &ApiParts,
    default_encoding: &'static str,
) -> Result<Body, Refusal> {
    receive_within(request, payload, parts, default_encoding, parts.body_limits).await
}

async fn receive_within(
    request: &HttpRequest,
    payload: web::Payload,
    parts: &ApiParts,
    default_encoding: &'static str,
    limits: BodyLimits,
) -> Result<Body, Refusal> {
    let header = request.headers().get(header::CONTENT_ENCODING);
    let encoding = header.map_or(Ok(default_encoding), |value| {
        value.to_str().map_err(|_| Refusal::UnknownEncoding("not text".to_owned()))
    })?;
    let reading = read(payload, parts, limits.request_bytes_max);
    let received = timeout(parts.client_timeout, reading).await;
    let body = received.map_err(|_| Refusal::TooSlow(parts.client_timeout))??;
    let limit = limits.decompressed_bytes_max;
    let mut memory = parts.ingest_memory.take(0)?;
    let large = &parts.large_bodies;
    let bytes = match encoding {
        "identity" | "" => return Ok(body),
        "zstd" => unpack(Unpacking::new(zstd(&body.bytes)?, limit, &mut memory), large).await?,
        "gzip" => unpack(Unpacking::new(gzip(&body.bytes), limit, &mut memory), large).await?,
        "snappy" => snappy(&body.bytes, limit, &mut memory)?,
        other => return Err(Refusal::UnknownEncoding(other.to_owned())),
    };
    Ok(Body { bytes, memory })
}

/// Memory is counted as the bytes come in, so that a client must send what it takes.
async fn read(mut payload: web::Payload, parts: &ApiParts, limit: usize) -> Result<Body, Refusal> {
    let mut memory = parts.ingest_memory.take(0)?;
    let mut counted = 0;
    let mut bytes = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|cause| Refusal::Malformed(format!("body: {cause}")))?;
        if bytes.len() + chunk.len() > limit {
            return Err(Refusal::TooLarge { limit, setting: SENT });
        }
        bytes.extend_from_slice(&chunk);
        if bytes.capacity() > counted {
            memory.grow(bytes.capacity() - counted)?;
            counted = bytes.capacity();
        }
    }
    Ok(Body { bytes: bytes.freeze(), memory })
}

/// What zstd and gzip have in common here.
type Unpacked<'a> = (Box<dyn Read + 'a>, fn(std::io::Error) -> Refusal);

fn zstd(body: &[u8]) -> Result<Unpacked<'_>, Refusal> {
    let fault = |cause: std::io::Error| Refusal::Malformed(format!("body is not zstd: {cause}"));
    let mut decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(fault)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(fault)?;
    Ok((Box::new(decoder), fault))
}

fn gzip(body: &[u8]) -> Unpacked<'_> {
    let fault = |cause: std::io::Error| Refusal::Malformed(format!("body is not gzip: {cause}"));
    (Box::new(flate2::read::MultiGzDecoder::new(body)), fault)
}

/// A body that is being decompressed, a slice at a time.
struct Unpacking<'a> {
    from: Unpacked<'a>,
    out: Vec<u8>,
    limit: usize,
    memory: &'a mut HeldMemory,
}

impl<'a> Unpacking<'a> {
    fn new(from: Unpacked<'a>, limit: usize, memory: &'a mut HeldMemory) -> Self {
        Self { from, out: Vec::new(), limit, memory }
    }

    /// Goes on by a slice; true at the end. Memory is taken before it is written.
    fn step(&mut self) -> Result<bool, Refusal> {
        if self.out.len() == self.out.capacity() {
            let more = self.out.len().max(PIECE_BYTES).min(self.limit + 1 - self.out.len());
            self.memory.grow(more)?;
            self.out.reserve_exact(more);
        }
        let more = (self.out.capacity() - self.out.len()).min(SLICE_BYTES);
        let (decoder, fault) = &mut self.from;
        let slice = decoder.take(more as u64).read_to_end(&mut self.out);
        let read = slice.map_err(*fault)?;
        if self.out.len() > self.limit {
            return Err(Refusal::TooLarge { limit: self.limit, setting: DECOMPRESSED });
        }
        Ok(read < more)
    }
}

/// Decompresses a body, a slice at a time, and only one that is large: meanwhile other requests of
/// the worker have their turn.
async fn unpack(mut body: Unpacking<'_>, large: &Semaphore) -> Result<Bytes, Refusal> {
    let mut turn = None;
    while !body.step()? {
        if turn.is_none() && body.out.len() >= SLICE_BYTES {
            turn = Some(large.acquire().await);
        }
        tokio::task::yield_now().await;
    }
    Ok(body.out.into())
}

/// Snappy's block format, which says its length first.
fn snappy(body: &[u8], limit: usize, memory: &mut HeldMemory) -> Result<Bytes, Refusal> {
    let fault = |cause: snap::Error| Refusal::Malformed(format!("body is not snappy: {cause}"));
    let length = snap::raw::decompress_len(body).map_err(fault)?;
    if length > limit {
        return Err(Refusal::TooLarge { limit, setting: DECOMPRESSED });
    }
    memory.grow(length)?;
    Ok(snap::raw::Decoder::new().decompress_vec(body).map_err(fault)?.into())
}

/// For fuzzing: what a compressed body holds.
pub(crate) fn fuzz_decompress(bytes: &[u8]) -> Option<Bytes> {
    const LIMIT: usize = 1 << 20;
    let mut memory = IngestMemory::new(16 * LIMIT).take(0).ok()?;
    let mut unpack = |from: Unpacked<'_>| {
        let mut body = Unpacking::new(from, LIMIT, &mut memory);
        while !body.step()? {}
        Ok::<Bytes, Refusal>(body.out.into())
    };
    let mut plain = vec![zstd(bytes).and_then(&mut unpack), unpack(gzip(bytes))];
    plain.push(snappy(bytes, LIMIT, &mut memory));
    plain.into_iter().flatten().next().inspect(|plain| assert!(plain.len() <= LIMIT))
}

/// How large one body may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLimits {
    /// Bytes as sent.
    pub request_bytes_max: usize,
    /// Bytes after decompression.
    pub decompressed_bytes_max: usize,
}
