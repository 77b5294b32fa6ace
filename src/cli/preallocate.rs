//! `granary preallocate`: inserts the empty documents of series over a range of time.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{
    flags::{AskArgs, SelectorArgs},
    http::read,
    series::selector,
    table::table,
};
use crate::{
    model::{UnixMillis, with_noun},
    query::PreallocateAnswer,
};

/// Insert the empty documents of series of a running daemon ahead of their time
///
/// The daemon does this for live series before each period. A preallocated document shows that a
/// series is expected; it has no samples and changes no query.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary preallocate --metric page_views --end \"$(date -u -d '2 days' +%F)\"
  granary preallocate --tags host=web1 --resolution 1m --end \"$(date -u -d '3 hours' +%FT%TZ)\"

A repeated command inserts nothing. A request has at most 1,000,000 documents.")]
pub(super) struct PreallocateArgs {
    #[command(flatten)]
    ask: AskArgs,
    #[command(flatten)]
    selector: SelectorArgs,
    /// Start: 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds [default: now]
    #[arg(long)]
    start: Option<String>,
    /// End, exclusive
    #[arg(long)]
    end: String,
    /// Only these resolutions, such as 1m,5m [default: all]
    #[arg(long, value_delimiter = ',')]
    resolution: Vec<String>,
}

pub(super) fn preallocate(args: &PreallocateArgs) -> anyhow::Result<ExitCode> {
    let body = json!({
        "selector": selector(&args.selector)?,
        "start": args.start,
        "end": args.end,
        "resolutions": args.resolution,
    });
    let answer = args.ask.daemon.post_json("admin/preallocate", &body)?;
    args.ask.print(&answer, || Ok(shown(&read(&answer)?)))
}

/// Returns a table with a row per resolution, and the totals.
fn shown(done: &PreallocateAnswer) -> String {
    let mut table = table(["resolution", "start", "end", "inserted", "existed"].map(str::to_owned));
    for level in &done.resolutions {
        let [start, end] = [level.start, level.end].map(|at| UnixMillis(at).to_string());
        let counts = [level.inserted, level.existed].map(|count| count.to_string());
        let [inserted, existed] = counts;
        table.add_row([level.resolution.clone(), start, end, inserted, existed]);
    }
    let (series, inserted) =
        (with_noun(done.series, "series"), with_noun(done.inserted, "document"));
    format!("{table}\n{series}: inserted {inserted}, {} existed", done.existed)
}
