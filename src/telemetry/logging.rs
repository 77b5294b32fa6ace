//! Structured logs on standard error.
//!
//! Must never know: the content of lines.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tracing_subscriber::EnvFilter;

use super::{
    last_lines::RememberingWriter,
    log_limit::{LimitedFormat, LogFormat},
};

/// The folders of `src` that are crates, whose log targets begin with the name of the crate.
const CRATES: [&str; 7] = ["clock", "ingest", "model", "policy", "query", "shell", "store"];

/// Returns a filter in which modules such as `granary::store` have the names of their crates.
fn with_crates(filter: &str) -> String {
    CRATES.iter().fold(filter.to_owned(), |filter, name| {
        filter.replace(&["granary", name].join("::"), &["granary", name].join("_"))
    })
}

/// A handle that changes logging while the daemon runs. Clones are cheap.
#[derive(Clone)]
pub struct Logging {
    is_json: Arc<AtomicBool>,
    set_filter: Arc<dyn Fn(EnvFilter) -> bool + Send + Sync>,
}

impl fmt::Debug for Logging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logging").field("is_json", &self.is_json).finish_non_exhaustive()
    }
}

impl Logging {
    /// Changes the format and the filter of the following lines; an invalid filter changes nothing.
    pub fn change(&self, format: LogFormat, filter: &str) {
        let changed = parse_filter(filter).map(|filter| (self.set_filter)(filter));
        if changed != Ok(true) {
            tracing::error!(filter, "cannot change the filter of the log");
        }
        self.is_json.store(format == LogFormat::Json, Ordering::Relaxed);
    }
}

/// Checks a filter.
///
/// # Errors
/// When the filter is invalid.
pub fn check_filter(filter: &str) -> Result<(), String> {
    parse_filter(filter).map(|_| ())
}

fn parse_filter(filter: &str) -> Result<EnvFilter, String> {
    // actix-http logs errors of clients as its own errors; the daemon logs these errors itself.
    let suppression =
        if filter.contains("actix_http") { "" } else { ",actix_http::h1::dispatcher=off" };
    EnvFilter::try_new(format!("{}{suppression}", with_crates(filter)))
        .map_err(|cause| format!("log.filter: {cause}"))
}

/// Starts logging; a second call has no effect.
///
/// # Errors
/// When the filter is invalid.
pub fn init_logging(format: LogFormat, filter: &str) -> Result<Logging, String> {
    let is_json = Arc::new(AtomicBool::new(format == LogFormat::Json));
    let event_format = LimitedFormat::new(is_json.clone());
    let builder = tracing_subscriber::fmt()
        .with_writer(|| RememberingWriter(std::io::stderr()))
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .event_format(event_format)
        .with_env_filter(parse_filter(filter)?)
        .with_filter_reloading();
    let handle = builder.reload_handle();
    if builder.try_init().is_err() {
        tracing::debug!("logging is already started");
    }
    let set_filter = Arc::new(move |filter| handle.reload(filter).is_ok());
    Ok(Logging { is_json, set_filter })
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
