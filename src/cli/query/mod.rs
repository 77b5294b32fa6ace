//! `granary query`: the same answers as the HTTP API, as tables and charts in a terminal.

mod plot;
mod promql;
pub(super) mod table;
pub(super) mod view;

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
};

use clap::{Args, Subcommand};

use super::{http, screen, times::TimeArgs};
use crate::query::{ChartAnswer, DocumentsAnswer, SeriesAnswer};
use view::View;

/// Ask a running daemon
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary query series --tags host=web1
  granary query chart --metric system_cpu_user --range 1h --resolution 1m
  granary query chart --metric page_views --range 30d --resolution day --tz Europe/Berlin --merge
  granary query chart --metric system_cpu_user --group-by host --top 5 --by max
  granary query promql 'topk(3, system_load_1m)'
  granary query promql 'rate(system_network_bytes_in[5m])' --range 1h
  granary query aggregate '[{$match: {host: \"web1\"}}, {$unwind: \"$days\"}]'
  granary query documents --metric page_views --form levels --range 31d --json
  granary query documents --metric page_views --resolution 1h --unfold --start 2026-11-20 --json")]
pub(super) struct QueryArgs {
    /// Where the daemon listens
    #[arg(long, env = "GRANARY_URL", default_value = http::DEFAULT_URL, value_parser = http::url, global = true)]
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
    Chart(Box<ChartArgs>),
    /// The stored documents in nested form, or unfolded into rows
    Documents {
        #[command(flatten)]
        range: Box<RangeArgs>,
        /// Rows of date and value instead of documents
        #[arg(long)]
        unfold: bool,
        /// nested (default), levels (a month each: days > hours > minutes) or rows
        #[arg(long)]
        form: Option<String>,
        #[command(flatten)]
        lines: Box<LineArgs>,
    },
    /// An expression of Prometheus' language, at one time or over a range
    Promql(promql::PromqlArgs),
    /// A pipeline in the manner of MongoDB's; the answer is JSON
    Aggregate {
        /// The pipeline: JSON or as in MongoDB's shell; from standard input when left out
        pipeline: Option<String>,
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
    /// 1m, 5m, 1h, 1d or another granularity of the daemon; auto chooses by range; charts and rows
    /// also any multiple, such as 15m or 7d, hour, day, week, 2weeks, month, quarter, year
    #[arg(long)]
    resolution: Option<String>,
    #[command(flatten)]
    times: TimeArgs,
    /// avg, `avg_per_sec`, total, min, max, count, first or last [default: by kind]; of charts
    /// also several, separated by commas; of documents for rows
    #[arg(long)]
    display: Option<String>,
}

#[derive(Debug, Args)]
struct LineArgs {
    /// Time zone whose hours, days, weeks or months are meant, such as Europe/Berlin or +02:00
    #[arg(long, allow_hyphen_values = true)]
    tz: Option<String>,
    /// Points of a series, at most, when the resolution is auto [default: 1500]
    #[arg(long)]
    points: Option<usize>,
    /// All series as one
    #[arg(long)]
    merge: bool,
    /// Series with the same values of these tags as one, such as host or host,core
    #[arg(long)]
    group_by: Option<String>,
}

impl LineArgs {
    fn pairs(&self) -> impl Iterator<Item = (&'static str, String)> {
        let given = [
            ("tz", self.tz.clone()),
            ("points", self.points.map(|number| number.to_string())),
            ("merge", self.merge.then(|| true.to_string())),
            ("group_by", self.group_by.clone()),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

#[derive(Debug, Args)]
struct ChartArgs {
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    lines: LineArgs,
    /// This many series with the largest number over the range
    #[arg(long)]
    top: Option<usize>,
    /// This many series with the smallest number over the range
    #[arg(long)]
    bottom: Option<usize>,
    /// Which number --top and --bottom compare [default: the one that is shown]
    #[arg(long)]
    by: Option<String>,
}

impl ChartArgs {
    fn pairs(&self) -> Vec<(&'static str, String)> {
        let number = |number: Option<usize>| number.map(|number| number.to_string());
        let given =
            [("top", number(self.top)), ("bottom", number(self.bottom)), ("by", self.by.clone())];
        let mut pairs = self.range.pairs();
        pairs.extend(self.lines.pairs());
        pairs.extend(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
        pairs
    }
}

impl RangeArgs {
    fn pairs(&self) -> Vec<(&'static str, String)> {
        let given = [
            ("metric", Some(self.metric.clone())),
            ("tags", self.tags.clone()),
            ("resolution", self.resolution.clone()),
            ("display", self.display.clone()),
        ];
        let given = given.into_iter().chain(self.times.pairs());
        given.filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

pub(super) fn query(args: &QueryArgs) -> anyhow::Result<ExitCode> {
    let (path, pairs) = match &args.what {
        What::Aggregate { pipeline } => {
            let typed = pipeline.clone().map_or_else(|| io::read_to_string(io::stdin()), Ok)?;
            return screen::print_json(&http::send(&args.url, "aggregate", &typed)?);
        }
        What::Promql(promql) => {
            let (body, chart) = promql.ask(&args.url)?;
            return match chart {
                _ if args.json => screen::print_json(&body),
                None => screen::print(&promql.table(&body)?),
                Some(chart) => screen::print(&drawn(&chart)),
            };
        }
        What::Chart(chart) => ("chart", chart.pairs()),
        What::Documents { range, unfold, form, lines } => {
            let mut pairs = range.pairs();
            pairs.extend(lines.pairs());
            pairs.push(("unfold", unfold.to_string()));
            pairs.extend(form.iter().map(|form| ("form", form.clone())));
            ("documents", pairs)
        }
        What::Series { metric, tags } => {
            let given = [("metric", metric), ("tags", tags)];
            let pairs = given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
            ("series", pairs.collect())
        }
    };
    let body = http::get(&args.url, path, &pairs)?;
    if args.json { screen::print_json(&body) } else { screen::print(&render(path, &body)?) }
}

fn render(path: &str, body: &str) -> anyhow::Result<String> {
    Ok(match path {
        "chart" => drawn(&serde_json::from_str::<ChartAnswer>(body)?),
        "documents" => table::documents(&serde_json::from_str::<DocumentsAnswer>(body)?),
        _ => table::series(&serde_json::from_str::<SeriesAnswer>(body)?),
    })
}

/// A chart: its title, in a terminal a plot, and a table.
fn drawn(answer: &ChartAnswer) -> String {
    let (view, columns) = (View::new(answer), screen::columns());
    let plot = io::stdout().is_terminal().then(|| plot::chart(&view, columns));
    let title = view::fold(&view.title, columns);
    let gap = if title.is_empty() { "" } else { "\n\n" };
    format!("{title}{gap}{}{}", plot.unwrap_or_default(), table::chart(&view, columns))
}
