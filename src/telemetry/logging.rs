//! Structured logs on standard error.
//!
//! Must never know: the content of lines.

use tracing_subscriber::EnvFilter;

use super::log_limit::{LimitedFormat, LogFormat};

/// The folders of `src` that are crates, and log by the names of these.
const CRATES: [&str; 7] = ["clock", "ingest", "model", "policy", "query", "shell", "store"];

/// Returns a filter in which modules such as `granary::store` have the names of their crates.
fn with_crates(filter: &str) -> String {
    CRATES.iter().fold(filter.to_owned(), |filter, name| {
        filter.replace(&["granary", name].join("::"), &["granary", name].join("_"))
    })
}

/// Starts logging; a second call has no effect.
///
/// # Errors
/// When the filter is invalid.
pub fn init_logging(format: LogFormat, filter: &str) -> Result<(), String> {
    // actix-http logs errors of clients as its own errors; the daemon logs these errors itself.
    let quiet = if filter.contains("actix_http") { "" } else { ",actix_http::h1::dispatcher=off" };
    let filter = EnvFilter::try_new(format!("{}{quiet}", with_crates(filter)))
        .map_err(|cause| format!("log.filter: {cause}"))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    let started = match format {
        LogFormat::Text => {
            builder.map_event_format(|inner| LimitedFormat::new(inner, format)).try_init()
        }
        LogFormat::Json => {
            let builder = builder.json().flatten_event(true);
            builder.map_event_format(|inner| LimitedFormat::new(inner, format)).try_init()
        }
    };
    if started.is_err() {
        tracing::debug!("logging is already started");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_names_a_module_wherever_its_code_is() {
        let check = |filter: &str, expected: &str| assert_eq!(with_crates(filter), expected);
        check("info,granary::store=debug", "info,granary_store=debug");
        check(
            "granary::store::view=trace,granary::api=warn",
            "granary_store::view=trace,granary::api=warn",
        );
        check("granary=debug", "granary=debug");
    }
}
