//! `granary query`: the answers of the HTTP API as tables and charts in a terminal.

mod plot;
mod promql;
mod tables;
mod view;

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
};

use clap::{Args, Subcommand};

use self::view::View;
use super::{
    flags::{ClientArgs, SelectorArgs, TagsArgs, TimeArgs, present},
    http::{Pair, read},
    screen, series,
};
use crate::query::ChartAnswer;

/// Query a running daemon
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
  granary query find 'db.1h.find({metric: \"page_views\"}).sort({date: -1}).limit(3)'
  granary query documents --metric page_views --form levels --range 31d --json
  granary query documents --metric page_views --resolution 1h --unfold --start 2026-11-20 --json")]
#[command(mut_arg("json", |json| json.help("Print the daemon's JSON answer instead of a table")))]
pub(super) struct QueryArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    command: QueryCommand,
}

#[derive(Debug, Subcommand)]
enum QueryCommand {
    /// One point for each slot of a range
    Chart(Box<ChartArgs>),
    /// The stored documents in nested form, or unfolded into rows
    Documents(Box<DocumentsArgs>),
    /// A PromQL expression, at one time or over a range
    Promql(promql::PromqlArgs),
    /// A pipeline, find, findOne, countDocuments or distinct in MongoDB's syntax; the output is
    /// JSON
    #[command(visible_alias = "find")]
    Aggregate {
        /// The command, as JSON or in the syntax of MongoDB's shell [default: from standard input]
        pipeline: Option<String>,
    },
    /// The matching series
    Series(SelectorArgs),
}

#[derive(Debug, Args)]
struct RangeArgs {
    /// Name of the metric
    #[arg(long)]
    metric: String,
    #[command(flatten)]
    tags: TagsArgs,
    /// 1m, 5m, 1h, 1d or another granularity of the daemon; auto chooses by range. Charts and rows
    /// also accept any multiple, such as 15m or 7d, and hour, day, week, 2weeks, month, quarter,
    /// year
    #[arg(long)]
    resolution: Option<String>,
    #[command(flatten)]
    times: TimeArgs,
    /// avg, `avg_per_sec`, `sum_per_sec`, total, min, max, count, first or last; of histograms, a
    /// percentile such as p99 or p99.9, or, in charts, distribution, which a terminal draws as a
    /// heat map [default: by kind]. Charts accept several, separated by commas; documents accept
    /// one, for rows
    #[arg(long)]
    display: Option<String>,
}

#[derive(Debug, Args)]
struct LineArgs {
    /// Time zone of hours, days, weeks and months, such as Europe/Berlin or +02:00
    #[arg(long, allow_hyphen_values = true)]
    tz: Option<String>,
    /// Maximum number of points of a series when the resolution is auto [default: 1500]
    #[arg(long)]
    points: Option<usize>,
    /// Merge all series into one
    #[arg(long)]
    merge: bool,
    /// Merge series with equal values of these tags, such as host or host,core
    #[arg(long)]
    group_by: Option<String>,
}

impl LineArgs {
    fn pairs(&self) -> impl Iterator<Item = Pair> {
        present([
            ("tz", self.tz.clone()),
            ("points", self.points.map(|number| number.to_string())),
            ("merge", self.merge.then(|| true.to_string())),
            ("group_by", self.group_by.clone()),
        ])
    }
}

#[derive(Debug, Args)]
struct ChartArgs {
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    lines: LineArgs,
    /// Only this many series with the highest values over the range
    #[arg(long)]
    top: Option<usize>,
    /// Only this many series with the lowest values over the range
    #[arg(long)]
    bottom: Option<usize>,
    /// Value that --top and --bottom compare [default: the displayed value]
    #[arg(long)]
    by: Option<String>,
}

impl ChartArgs {
    fn pairs(&self) -> Vec<Pair> {
        let number = |number: Option<usize>| number.map(|number| number.to_string());
        let ranking = present([
            ("top", number(self.top)),
            ("bottom", number(self.bottom)),
            ("by", self.by.clone()),
        ]);
        self.range.pairs().chain(self.lines.pairs()).chain(ranking).collect()
    }
}

#[derive(Debug, Args)]
struct DocumentsArgs {
    #[command(flatten)]
    range: RangeArgs,
    /// Output rows of date and value instead of documents
    #[arg(long)]
    unfold: bool,
    /// nested (default), levels (one document per month: days > hours > minutes) or rows
    #[arg(long)]
    form: Option<String>,
    /// Include preallocated documents without samples
    #[arg(long)]
    shells: bool,
    #[command(flatten)]
    lines: LineArgs,
}

impl DocumentsArgs {
    fn pairs(&self) -> Vec<Pair> {
        let form = present([
            ("unfold", Some(self.unfold.to_string())),
            ("form", self.form.clone()),
            ("shells", self.shells.then(|| true.to_string())),
        ]);
        self.range.pairs().chain(self.lines.pairs()).chain(form).collect()
    }
}

impl RangeArgs {
    fn pairs(&self) -> impl Iterator<Item = Pair> {
        let display_params =
            present([("resolution", self.resolution.clone()), ("display", self.display.clone())]);
        let metric = present([("metric", Some(self.metric.clone()))]);
        metric.chain(self.tags.pairs()).chain(display_params).chain(self.times.pairs())
    }
}

pub(super) fn query(args: &QueryArgs) -> anyhow::Result<ExitCode> {
    let (client, daemon) = (&args.client, &args.client.daemon);
    match &args.command {
        QueryCommand::Chart(chart) => {
            let body = daemon.get("chart", &chart.pairs())?;
            client.print(&body, || Ok(render_chart(&read(&body)?)))
        }
        QueryCommand::Documents(documents) => {
            let body = daemon.get("documents", &documents.pairs())?;
            client.print(&body, || Ok(tables::documents(&read(&body)?)))
        }
        QueryCommand::Promql(promql) => {
            let (body, chart) = promql.fetch(daemon)?;
            client.print(&body, || {
                chart.map_or_else(|| promql.table(&body), |chart| Ok(render_chart(&chart)))
            })
        }
        QueryCommand::Aggregate { pipeline } => {
            let typed = pipeline.clone().map_or_else(|| io::read_to_string(io::stdin()), Ok)?;
            screen::print_json(&daemon.post_text("aggregate", &typed)?)
        }
        QueryCommand::Series(selector) => series::list(client, selector),
    }
}

/// Returns a chart as text: its title, a plot in a terminal, and a table.
fn render_chart(answer: &ChartAnswer) -> String {
    let (view, columns) = (View::new(answer), screen::columns());
    let plot = io::stdout().is_terminal().then(|| plot::chart(&view, columns));
    let title = screen::fold(&view.title, columns);
    let gap = if title.is_empty() { "" } else { "\n\n" };
    format!("{title}{gap}{}{}", plot.unwrap_or_default(), tables::chart(&view, columns))
}
