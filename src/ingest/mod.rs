//! Protocols, one file each, and the parts that they share: from bytes to a batch.
//!
//! The collector calls `protocol.rs`, which selects the protocol, and passes the batches on. Must
//! never know: HTTP, the writer.

pub mod collectd;
pub mod graphite;
pub mod influx;
pub mod memory;
pub mod native;
pub mod otlp;
mod pickle;
pub mod protocol;
pub mod refusals;
pub mod remote_write;
pub mod rows;
pub mod series_cache;
pub mod updates;
