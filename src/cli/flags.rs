//! The flags that several commands share, and their parameters of queries.

use std::process::ExitCode;

use clap::Args;

use super::{
    http::{Daemon, Pair},
    screen,
};
use crate::model::parse_duration_ms;

/// Returns the parameters that are set.
pub(super) fn present<const N: usize>(
    pairs: [(&'static str, Option<String>); N],
) -> impl Iterator<Item = Pair> {
    pairs.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

/// The daemon to query, and the format of the output.
#[derive(Debug, Args)]
pub(super) struct AskArgs {
    #[command(flatten)]
    pub(super) daemon: Daemon,
    /// Print the daemon's JSON answer
    #[arg(long, global = true)]
    pub(super) json: bool,
}

impl AskArgs {
    /// Prints the response as JSON when requested, otherwise the text that `shown` returns.
    pub(super) fn print(
        &self,
        answer: &str,
        shown: impl FnOnce() -> anyhow::Result<String>,
    ) -> anyhow::Result<ExitCode> {
        if self.json { screen::print_json(answer) } else { screen::print(&shown()?) }
    }
}

/// A selection of series by metric and tags.
#[derive(Debug, Args)]
pub(super) struct SelectorArgs {
    /// Name of the metric [default: any]
    #[arg(long)]
    pub(super) metric: Option<String>,
    #[command(flatten)]
    pub(super) tags: TagsArgs,
}

impl SelectorArgs {
    pub(super) fn pairs(&self) -> impl Iterator<Item = Pair> {
        present([("metric", self.metric.clone())]).chain(self.tags.pairs())
    }
}

/// A selection of series by tags.
#[derive(Debug, Args)]
pub(super) struct TagsArgs {
    /// Tags that must match, such as host=web1,core=0 or mount='"/a,b"'
    #[arg(long)]
    pub(super) tags: Option<String>,
}

impl TagsArgs {
    pub(super) fn pairs(&self) -> impl Iterator<Item = Pair> {
        present([("tags", self.tags.clone())])
    }
}

/// The time range of a command.
#[derive(Debug, Args)]
pub(super) struct TimeArgs {
    /// Duration up to the end, such as 1h, 14d or 1y [default: 1h]
    #[arg(long)]
    range: Option<String>,
    /// Start: 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds
    #[arg(long)]
    start: Option<String>,
    /// End, exclusive [default: now]
    #[arg(long)]
    end: Option<String>,
}

impl TimeArgs {
    pub(super) fn pairs(&self) -> impl Iterator<Item = Pair> {
        present([
            ("range", self.range.clone()),
            ("start", self.start.clone()),
            ("end", self.end.clone()),
        ])
    }
}

/// Returns the name of the user who runs the command.
pub(super) fn current_user() -> String {
    std::env::var("USER")
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Parses a duration into milliseconds.
pub(super) fn duration(text: &str) -> Result<i64, String> {
    let found = parse_duration_ms(text).filter(|ms| *ms > 0);
    found.ok_or_else(|| format!("{text:?} is not a duration; use 30m, 2h or 1d12h"))
}
