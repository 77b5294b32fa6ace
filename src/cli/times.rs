//! The times that commands ask for: `--range`, `--start` and `--end`.

use clap::Args;

/// The time range of a command.
#[derive(Debug, Args)]
pub(super) struct TimeArgs {
    /// This long up to the end, such as 1h, 14d or 1y [default: 1h]
    #[arg(long)]
    range: Option<String>,
    /// From when: 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds
    #[arg(long)]
    start: Option<String>,
    /// Until when, exclusive [default: now]
    #[arg(long)]
    end: Option<String>,
}

impl TimeArgs {
    /// Names and values as a query string has them, those that are not given as `None`.
    pub(super) fn pairs(&self) -> [(&'static str, Option<String>); 3] {
        [("range", self.range.clone()), ("start", self.start.clone()), ("end", self.end.clone())]
    }
}
