//! The flags that several commands have, and how a query has their values. Knows nothing of what a
//! command does with the answer, but whether it is printed as it came.

use std::process::ExitCode;

use clap::Args;

use super::{
    http::{Daemon, Pair},
    screen,
};
use crate::model::length_ms;

/// What is given of a query's parameters.
pub(super) fn given<const N: usize>(
    pairs: [(&'static str, Option<String>); N],
) -> impl Iterator<Item = Pair> {
    pairs.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

/// Whom a command asks, and how the answer is printed.
#[derive(Debug, Args)]
pub(super) struct AskArgs {
    #[command(flatten)]
    pub(super) daemon: Daemon,
    /// Print the daemon's JSON answer
    #[arg(long, global = true)]
    pub(super) json: bool,
}

impl AskArgs {
    /// Prints an answer as it came when that is asked for, else what people are shown of it.
    pub(super) fn print(
        &self,
        answer: &str,
        shown: impl FnOnce() -> anyhow::Result<String>,
    ) -> anyhow::Result<ExitCode> {
        if self.json { screen::print_json(answer) } else { screen::print(&shown()?) }
    }
}

/// Which series, by name and tags.
#[derive(Debug, Args)]
pub(super) struct SelectorArgs {
    /// Name of the metric; any when left out
    #[arg(long)]
    pub(super) metric: Option<String>,
    #[command(flatten)]
    pub(super) tags: TagsArgs,
}

impl SelectorArgs {
    pub(super) fn pairs(&self) -> impl Iterator<Item = Pair> {
        given([("metric", self.metric.clone())]).chain(self.tags.pairs())
    }
}

/// Which series, by tags.
#[derive(Debug, Args)]
pub(super) struct TagsArgs {
    /// Tags that must match, such as host=web1,core=0 or mount='"/a,b"'
    #[arg(long)]
    pub(super) tags: Option<String>,
}

impl TagsArgs {
    pub(super) fn pairs(&self) -> impl Iterator<Item = Pair> {
        given([("tags", self.tags.clone())])
    }
}

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
    pub(super) fn pairs(&self) -> impl Iterator<Item = Pair> {
        given([
            ("range", self.range.clone()),
            ("start", self.start.clone()),
            ("end", self.end.clone()),
        ])
    }
}

/// Who runs the command, as far as the machine says.
pub(super) fn who() -> String {
    std::env::var("USER")
        .ok()
        .filter(|own| !own.is_empty())
        .unwrap_or_else(|| "somebody".to_owned())
}

/// A length of time, in milliseconds.
pub(super) fn length(text: &str) -> Result<i64, String> {
    let found = length_ms(text).filter(|ms| *ms > 0);
    found.ok_or_else(|| format!("{text:?} is no length of time; write 30m, 2h or 1d12h"))
}
