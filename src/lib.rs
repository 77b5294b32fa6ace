//! Granary: a monitoring store that keeps every sample pre-aggregated.
//!
//! ARCHITECTURE.md has the map. Arrows point from the user to the used, and `tests/it/tidy` holds
//! them: `model` <- `policy` <- `clock`, `shell`, `store` <- `ingest`, `import`, `query`, `telemetry` <-
//! `alerts` <- `notify`, `kept` <- `actors` <- `api` <- `config` <- `daemon` <- `cli` <- `main`.

/// What tests share names the crate as they do.
#[cfg(test)]
extern crate self as granary;
#[cfg(test)]
#[path = "../tests/support/setup.rs"]
#[allow(dead_code, clippy::panic, reason = "the tests in tests/ use more of it")]
mod setup;

pub mod actors;
pub mod alerts;
pub mod api;
pub mod cli;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod fuzzing;
pub mod import;
pub mod ingest;
pub mod kept;
pub mod model;
pub mod notify;
pub mod policy;
pub mod query;
mod shell;
pub mod store;
pub mod telemetry;
