//! Protocols, one file each: from bytes to a batch.
//!
//! Must never know: HTTP, the writer. `protocol.rs` chooses among them. The collector calls it and
//! passes the batches on.

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
