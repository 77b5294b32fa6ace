//! Decoders of `Content-Encoding`, within limits of size and memory.
//!
//! Must never know: requests, and what the bytes mean.

use std::io::Read;

use actix_web::web::Bytes;

use super::refusal::Refusal;
use crate::ingest::memory::{IngestMemory, ReservedMemory};

/// The setting that limits bodies of samples, as sent and decompressed.
pub(super) const SETTING: &str = "ingest.body_memory_max (a request may take a 32nd of it)";
/// The setting that limits packed bodies.
pub(super) const PACKED_SETTING: &str =
    "ingest.body_memory_max (a packed request may take a 64th of it, decompressed)";
/// The minimum size of the first decompressed piece.
const PIECE_BYTES: usize = 64 << 10;
/// The largest zstd window: 8 MiB, the default limit of zstd's command line.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Decompresses a body to at most the given number of bytes, and reserves memory before each write.
pub(super) type Decompress = fn(&[u8], usize, &mut ReservedMemory) -> Result<Bytes, Refusal>;

pub(super) fn zstd(
    body: &[u8],
    limit: usize,
    memory: &mut ReservedMemory,
) -> Result<Bytes, Refusal> {
    let fault = |cause: std::io::Error| Refusal::Malformed(format!("body is not zstd: {cause}"));
    let mut decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(fault)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(fault)?;
    read_all(decoder, body.len(), limit, memory, fault)
}

pub(super) fn gzip(
    body: &[u8],
    limit: usize,
    memory: &mut ReservedMemory,
) -> Result<Bytes, Refusal> {
    let fault = |cause: std::io::Error| Refusal::Malformed(format!("body is not gzip: {cause}"));
    read_all(flate2::read::MultiGzDecoder::new(body), body.len(), limit, memory, fault)
}

/// Reads a stream to its end; memory is reserved for each piece before it is written.
fn read_all(
    mut decoder: impl Read,
    compressed: usize,
    limit: usize,
    memory: &mut ReservedMemory,
    fault: impl Fn(std::io::Error) -> Refusal,
) -> Result<Bytes, Refusal> {
    let mut out = Vec::new();
    let mut more = (compressed * 4).max(PIECE_BYTES);
    loop {
        more = more.min(limit + 1 - out.len());
        memory.grow(more)?;
        out.reserve_exact(more);
        let read = decoder.by_ref().take(more as u64).read_to_end(&mut out).map_err(&fault)?;
        if out.len() > limit {
            return Err(Refusal::TooLarge { limit, setting: SETTING });
        }
        if read < more {
            return Ok(out.into());
        }
        more = out.len();
    }
}

/// Decodes Snappy's block format, which starts with the decompressed length.
pub(super) fn snappy(
    body: &[u8],
    limit: usize,
    memory: &mut ReservedMemory,
) -> Result<Bytes, Refusal> {
    let fault = |cause: snap::Error| Refusal::Malformed(format!("body is not snappy: {cause}"));
    let length = snap::raw::decompress_len(body).map_err(fault)?;
    if length > limit {
        return Err(Refusal::TooLarge { limit, setting: SETTING });
    }
    memory.grow(length)?;
    Ok(snap::raw::Decoder::new().decompress_vec(body).map_err(fault)?.into())
}

/// Returns the content of a compressed body, for fuzzing.
pub(crate) fn fuzz_decompress(bytes: &[u8]) -> Option<Bytes> {
    const LIMIT: usize = 1 << 20;
    let mut memory = IngestMemory::new(16 * LIMIT).reserve(0).ok()?;
    let mut decoded = |decode: fn(&[u8], usize, &mut ReservedMemory) -> Result<Bytes, Refusal>| {
        decode(bytes, LIMIT, &mut memory)
    };
    let plain = [decoded(zstd), decoded(gzip), decoded(snappy)];
    plain.into_iter().flatten().next().inspect(|plain| assert!(plain.len() <= LIMIT))
}
