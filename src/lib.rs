//! Granary: a monitoring store that aggregates every sample at several resolutions.
//!
//! ARCHITECTURE.md describes the modules. A module may only use modules to its left in this list,
//! and `tests/it/tidy` checks the imports: `model` <- `policy` <- `access`, `clock`, `tls`,
//! `shell`, `store`, `oidc`, `publish` <- `ingest`, `import`, `query`, `replication`, `telemetry`
//! <- `alerts` <- `notify`, `kept` <- `actors` <- `api`, `cluster` <- `config` <- `daemon` <- `cli`
//! <- `main`.

// The shared test setup below refers to the crate by its name, as the tests in tests/ do.
#[cfg(test)]
extern crate self as granary;
#[cfg(test)]
#[path = "../tests/support/faulty/mod.rs"]
#[expect(dead_code, reason = "the simulation needs more of it")]
#[allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]
mod faulty;
#[cfg(test)]
#[path = "../tests/support/setup.rs"]
#[allow(dead_code, clippy::panic, reason = "the tests in tests/ use the rest of this module")]
mod setup;

pub mod access;
pub mod actors;
pub mod alerts;
pub mod api;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod daemon;
pub mod fuzzing;
pub mod import;
pub mod kept;
pub mod notify;
pub mod oidc;
pub mod telemetry;
pub mod tls;

// The folders that are crates.
pub use granary_clock as clock;
pub use granary_ingest as ingest;
pub use granary_model as model;
pub use granary_policy as policy;
pub use granary_publish as publish;
pub use granary_query as query;
pub use granary_replication as replication;
pub use granary_store as store;
