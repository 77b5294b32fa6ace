//! The native protocol: batches, pings, and their responses.
//!
//! A request body is one or more batches, as consecutive BSON documents, optionally compressed with
//! zstd as a whole. Each batch has the sender's `(agent, epoch, seq)`, so a repeated batch is
//! recognized and changes nothing. Series are defined once per sender epoch under small numbers
//! ("refs"); samples are three binary columns, and native histograms a fourth. `packed` is a
//! smaller form for daemons that announce support for it. The daemon and all agents share this
//! crate, which must never know the daemon.

mod answer;
mod batch;
mod decode;
mod encode;
mod enroll;
mod histograms;
mod json;
mod packed;
mod ping;

pub use answer::{ErrorAnswer, IngestAnswer, Refusal};
pub use batch::{Batch, Kind, SeriesDefinition, UnknownKind};
pub use decode::{BatchView, DecodeError, SeriesView, decode_batch, split_batches};
pub use encode::encode_batch;
pub use enroll::{ENROLL_PATH, EnrollAnswer, EnrollBody, RENEW_KEY_HEADER, RENEW_PATH};
pub use histograms::{push_histogram, read_histograms};
pub use json::{
    InvalidSamples, JsonBatch, JsonHistogram, JsonSample, SampleContent, decode_json,
    decode_json_sample,
};
pub use packed::{PACKED_HISTOGRAMS, PACKED_MEDIA_TYPE, pack, unpack};
pub use ping::{
    PING_PATH, PINGS_PER_REQUEST_MAX, Ping, PingAnswer, PingBody, RefusedPing, decode_pings,
    ping_interval,
};

/// Path of the ingest endpoint.
pub const INGEST_PATH: &str = "/api/v1/ingest";

/// Media type of a BSON body.
pub const BSON_MEDIA_TYPE: &str = "application/bson";

/// The header, in lower case, in which a daemon announces additional media types of bodies.
pub const ACCEPT_POST: &str = "accept-post";

/// The stale marker: a value that ends a series until its next sample. It is the NaN that
/// Prometheus uses (`StaleNaN` of prometheus/model/value).
pub const STALE_MARKER: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// Returns true when a value is the stale marker.
pub fn is_stale_marker(value: f64) -> bool {
    value.to_bits() == STALE_MARKER.to_bits()
}

/// The protocol's version, field `v` of every batch.
pub const PROTOCOL_VERSION: i32 = 1;

/// The maximum number of batches in a request.
pub const BATCHES_PER_REQUEST_MAX: usize = 1024;

/// The maximum size of a sender's name.
pub const AGENT_BYTES_MAX: usize = 256;
