//! The replicated log on a real server of MongoDB's protocol: conformance, and real processes that
//! are killed and stopped.
//!
//! The target belongs to the crate granary-replication, so it is built without the daemon. The
//! tests need `secantusdb`, which `.ci/run` installs, so they are ignored by default:
//! `cargo test --workspace --test replicas -- --ignored`. `GRANARY_REPLICA_SECONDS` sets the
//! length of the test with kills.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot continue has failed")]
#![allow(clippy::print_stderr, reason = "tests print their figures")]

mod client;
mod conformance;
mod kills;
mod node;
#[path = "../support/ports.rs"]
mod ports;
mod server;
mod toy;
