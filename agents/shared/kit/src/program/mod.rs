//! The program around the agent: flags, settings, logs, signals and exit codes.
//!
//! Must never know: samples.

pub(crate) mod args;
pub(crate) mod confined;
pub(crate) mod exit;
pub(crate) mod faults;
pub(crate) mod limited;
pub(crate) mod logging;
pub(crate) mod signals;
pub(crate) mod spans;
