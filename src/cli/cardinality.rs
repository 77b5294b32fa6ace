//! `granary cardinality`: the metrics, tags and senders with the most series, now and earlier.

use std::process::ExitCode;

use clap::Args;
use comfy_table::Cell;

use super::{
    flags::ClientArgs,
    http::read,
    screen,
    table::{right, table},
};
use crate::{
    kept::{CardinalityAnswer, CountedName},
    model::{UnixMillis, with_noun},
};

/// List the metrics, tags and senders with the most series, now and yesterday
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary cardinality
  granary cardinality --limit 50 --json

The daemon counts the series at the beginning of each day in UTC and stores the 1,000 largest metrics,
tags and senders; \"-\" means that the earlier number is unknown.")]
pub(super) struct CardinalityArgs {
    #[command(flatten)]
    ask: ClientArgs,
    /// The number of metrics, tags and senders
    #[arg(long, default_value_t = 10)]
    limit: usize,
}

pub(super) fn cardinality(args: &CardinalityArgs) -> anyhow::Result<ExitCode> {
    let answer = args.ask.daemon.get("cardinality", &[("limit", args.limit.to_string())])?;
    args.ask.print(&answer, || Ok(shown(&read(&answer)?)))
}

fn shown(answer: &CardinalityAnswer) -> String {
    let part = |title: &str, unit: &str, rows: &[CountedName]| {
        let mut table = table([title, unit, "before", "change"].map(str::to_owned));
        for CountedName { name, count, before } in rows {
            let change = before.map(|before| format!("{:+}", *count as i64 - before as i64));
            let before = before.map(|before| before.to_string());
            let dash = || "-".to_owned();
            table.add_row([
                Cell::new(screen::text(name)),
                right(count),
                right(before.unwrap_or_else(dash)),
                right(change.unwrap_or_else(dash)),
            ]);
        }
        table.to_string()
    };
    let since = match answer.since {
        Some(since) => format!("before: {}", UnixMillis(since)),
        None => "nothing earlier is known".to_owned(),
    };
    format!(
        "{}\n{}\n{}\n{}, {since}",
        part("metric", "series", &answer.metrics),
        part("tag", "values", &answer.tags),
        part("sender", "series", &answer.senders),
        with_noun(answer.series.count, "series"),
    )
}
