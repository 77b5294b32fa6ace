//! The real binaries: what a user sees, and kill -9.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "../support/daemon.rs"]
mod daemon;
mod damage;
mod faults;
mod kills;
mod reference_cases;
mod settings;
