//! Protocols, one file each, and the parts that they share: from bytes to a batch.
//!
//! The collector calls `protocol.rs`, which selects the protocol, and passes the batches on. Must
//! never know: HTTP, the writer.

#[cfg(test)]
extern crate self as granary;
#[cfg(test)]
#[path = "../../tests/support/times.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod test_times;

// Paths are those of the crate granary, which reexports these crates.
use crate as ingest;
use granary_model as model;
use granary_policy as policy;
use granary_shell as shell;
use granary_store as store;

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
