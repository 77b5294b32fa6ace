//! The native batch: what an agent sends to the daemon and what it gets back; and its pings.
//!
//! A request body is one or more batches, one BSON document after the other, optionally
//! compressed with zstd as a whole. Each batch carries the sender's `(agent, epoch, seq)`, so a
//! batch that is sent again is recognised and changes nothing. Series are defined once per
//! sender epoch under small numbers ("refs"); samples are three binary columns.
//! `packed` writes the same in fewer bytes, for daemons that say that they read it.
//! This crate knows nothing of the daemon: it is shared by the daemon and by every agent.

mod answer;
mod batch;
mod decode;
mod encode;
mod json;
mod packed;
mod ping;

pub use answer::{ErrorAnswer, IngestAnswer, Refusal};
pub use batch::{Batch, Kind, SeriesDefinition, UnknownKind};
pub use decode::{BatchView, DecodeError, SeriesView, decode_batch, split_batches};
pub use encode::encode_batch;
pub use json::{JsonBatch, Unread, decode_json};
pub use packed::{PACKED_MEDIA_TYPE, pack, unpack};
pub use ping::{
    PING_PATH, PINGS_PER_REQUEST_MAX, Ping, PingAnswer, PingBody, RefusedPing, decode_pings,
    ping_interval,
};

/// Path of the ingest endpoint.
pub const INGEST_PATH: &str = "/api/v1/ingest";

/// Media type of a BSON body.
pub const BSON_MEDIA_TYPE: &str = "application/bson";

/// The header, in lower case, by which a daemon says which bodies it reads beside those that all read.
pub const ACCEPT_POST: &str = "accept-post";

/// The value by which a sender says that a series has ended, until its next later sample: a NaN of
/// its own, the same as Prometheus' (`StaleNaN` of prometheus/model/value).
pub const STALE_MARKER: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// Whether a value is the stale marker.
pub fn is_stale_marker(value: f64) -> bool {
    value.to_bits() == STALE_MARKER.to_bits()
}

/// The protocol's version, field `v` of every batch.
pub const PROTOCOL_VERSION: i32 = 1;

/// The most batches that one request body may hold.
pub const BATCHES_PER_REQUEST_MAX: usize = 1024;

/// Bytes of a sender's name, at most.
pub const AGENT_BYTES_MAX: usize = 256;
