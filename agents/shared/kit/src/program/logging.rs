//! Structured logs on standard error.

use std::{
    env,
    io::{IsTerminal, stderr},
};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

use crate::LogFormat;

/// Starts logging. `RUST_LOG` overrides the default: level `info`, and no lines of libraries.
/// Further calls have no effect.
pub(crate) fn init(format: LogFormat) {
    let filter = if env::var_os("RUST_LOG").is_some() {
        EnvFilter::builder().with_default_directive(LevelFilter::INFO.into()).from_env_lossy()
    } else {
        // Libraries log every failed handshake; the agent logs the relevant part.
        EnvFilter::new("off,granary=info")
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal());
    let started = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
}
