//! `granary query`: the same answers as the HTTP API, as tables and charts in a terminal.

mod plot;
mod table;

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
};

use clap::{Args, Subcommand};

use super::http;
use crate::query::{ChartAnswer, DocumentsAnswer, SeriesAnswer};

/// Ask a running daemon
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary query series --tags host=web1
  granary query chart --metric system_cpu_user --tags core=total --range 1h --resolution 1m
  granary query documents --metric page_views --resolution 1h --unfold --start 2026-11-20 --json")]
pub(super) struct QueryArgs {
    /// Where the daemon listens
    #[arg(long, env = "GRANARY_URL", default_value = "http://127.0.0.1:7117", global = true)]
    url: String,
    /// Print the daemon's JSON answer instead of a table
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// One point for each slot of a range
    Chart(RangeArgs),
    /// The stored documents in nested form, or unfolded into rows
    Documents {
        #[command(flatten)]
        range: RangeArgs,
        /// Rows of date and value instead of documents
        #[arg(long)]
        unfold: bool,
    },
    /// The series that match
    Series {
        /// Name of the metric; any when left out
        #[arg(long)]
        metric: Option<String>,
        /// Tags that must match, such as host=web1,core=0
        #[arg(long)]
        tags: Option<String>,
    },
}

#[derive(Debug, Args)]
struct RangeArgs {
    /// Name of the metric
    #[arg(long)]
    metric: String,
    /// Tags that must match, such as host=web1,core=0
    #[arg(long)]
    tags: Option<String>,
    /// 1m, 5m, 1h, 1d or another granularity of the daemon; auto chooses by range
    #[arg(long)]
    resolution: Option<String>,
    /// This long up to the end, such as 1h, 14d or 1y [default: 1h]
    #[arg(long)]
    range: Option<String>,
    /// From when: 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds
    #[arg(long)]
    start: Option<String>,
    /// Until when, exclusive [default: now]
    #[arg(long)]
    end: Option<String>,
    /// avg, `avg_per_sec`, total, min, max, count, first or last [default: by kind]
    #[arg(long)]
    display: Option<String>,
}

impl RangeArgs {
    fn pairs(&self) -> Vec<(&'static str, String)> {
        let given = [
            ("metric", Some(&self.metric)),
            ("tags", self.tags.as_ref()),
            ("resolution", self.resolution.as_ref()),
            ("range", self.range.as_ref()),
            ("start", self.start.as_ref()),
            ("end", self.end.as_ref()),
            ("display", self.display.as_ref()),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name, value?.clone()))).collect()
    }
}

pub(super) fn query(args: &QueryArgs) -> anyhow::Result<ExitCode> {
    let (path, pairs) = match &args.what {
        What::Chart(range) => ("chart", range.pairs()),
        What::Documents { range, unfold } => {
            let mut pairs = range.pairs();
            pairs.push(("unfold", unfold.to_string()));
            ("documents", pairs)
        }
        What::Series { metric, tags } => {
            let given = [("metric", metric), ("tags", tags)];
            let pairs = given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
            ("series", pairs.collect())
        }
    };
    let body = http::get(&args.url, path, &pairs)?;
    let text = if args.json { body } else { render(&args.what, &body)? };
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{}", text.trim_end()) {
        // The reader, such as `head`, has seen enough.
        Err(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        outcome => Ok(outcome.map(|()| ExitCode::SUCCESS)?),
    }
}

fn render(what: &What, body: &str) -> anyhow::Result<String> {
    Ok(match what {
        What::Chart(_) => {
            let answer: ChartAnswer = serde_json::from_str(body)?;
            let plot = std::io::stdout().is_terminal().then(|| plot::chart(&answer));
            format!("{}{}", plot.unwrap_or_default(), table::chart(&answer))
        }
        What::Documents { .. } => table::documents(&serde_json::from_str::<DocumentsAnswer>(body)?),
        What::Series { .. } => table::series(&serde_json::from_str::<SeriesAnswer>(body)?),
    })
}
