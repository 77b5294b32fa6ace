//! Structured logs on standard error.
//!
//! Must never know: the content of lines.

use tracing_subscriber::EnvFilter;

use super::log_limit::{Limited, LogFormat};

/// Starts logging; a second call has no effect.
///
/// # Errors
/// When the filter is invalid.
pub fn init_logging(format: LogFormat, filter: &str) -> Result<(), String> {
    // actix-http logs errors of clients as its own errors; the daemon logs these errors itself.
    let quiet = if filter.contains("actix_http") { "" } else { ",actix_http::h1::dispatcher=off" };
    let filter = EnvFilter::try_new(format!("{filter}{quiet}"))
        .map_err(|cause| format!("log.filter: {cause}"))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    let started = match format {
        LogFormat::Text => builder.map_event_format(|inner| Limited::new(inner, format)).try_init(),
        LogFormat::Json => {
            let builder = builder.json().flatten_event(true);
            builder.map_event_format(|inner| Limited::new(inner, format)).try_init()
        }
    };
    if started.is_err() {
        tracing::debug!("logging is already started");
    }
    Ok(())
}
