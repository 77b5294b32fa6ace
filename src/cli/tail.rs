//! `granary tail`: prints cells of a running daemon as they change.

use std::{
    io::{self, BufRead, BufReader, Write},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;

use super::{
    flags::{TagsArgs, present},
    http::{Daemon, Pair, read},
    screen::{self, fold, print_error},
    table::{self, short},
};
use crate::{
    model::{UnixMillis, with_noun},
    query::{SeriesAnswer, TailCell, TailEvent},
};

/// The maximum size of an event.
const EVENT_BYTES_MAX: u64 = 64 << 20;

/// Print changes of series as samples are accepted
///
/// Prints a line for each new or changed cell, at most once a second, until Ctrl-C. Only the
/// current slot and the two slots before it are watched.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary tail --tags host=web1
  granary tail --metric page_views --resolution 1h --json")]
pub(super) struct TailArgs {
    #[command(flatten)]
    daemon: Daemon,
    /// Name of the metric
    #[arg(long, required_unless_present = "tags")]
    metric: Option<String>,
    #[command(flatten)]
    tags: TagsArgs,
    /// Granularity of the daemon [default: the finest]
    #[arg(long)]
    resolution: Option<String>,
    /// Do not start with the present cells
    #[arg(long)]
    no_state: bool,
    /// Print each event as the daemon's JSON
    #[arg(long)]
    json: bool,
}

impl TailArgs {
    fn selector(&self) -> Vec<Pair> {
        present([("metric", self.metric.clone())]).chain(self.tags.pairs()).collect()
    }
}

pub(super) fn tail(args: &TailArgs) -> anyhow::Result<ExitCode> {
    let mut pairs = args.selector();
    report_missing_series(args, &pairs)?;
    pairs.extend(present([("resolution", args.resolution.clone())]));
    pairs.push(("state", (!args.no_state).to_string()));
    let mut lines = BufReader::new(args.daemon.stream("tail", &pairs)?);
    let (mut event, mut line) = (String::new(), String::new());
    loop {
        line.clear();
        let read = io::Read::take(&mut lines, EVENT_BYTES_MAX).read_line(&mut line);
        if read.context("read the tail")? == 0 {
            print_error("the daemon ended the tail");
            return Ok(ExitCode::SUCCESS);
        }
        let text = line.trim_end();
        if let Some(name) = text.strip_prefix("event: ") {
            name.clone_into(&mut event);
        }
        let Some(data) = text.strip_prefix("data: ") else { continue };
        if event == "error" {
            let fault: serde_json::Value = serde_json::from_str(data).context("read an event")?;
            bail!("{}", screen::text(fault["message"].as_str().unwrap_or(data)));
        }
        let shown = if args.json { format!("{}\n", screen::json(data)) } else { render(data)? };
        let mut out = io::stdout().lock();
        match out.write_all(shown.as_bytes()).and_then(|()| out.flush()) {
            // The reader, such as `head`, has read enough.
            Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(ExitCode::SUCCESS);
            }
            outcome => outcome?,
        }
    }
}

/// Reports when no series matches: nothing is printed until a matching series appears.
fn report_missing_series(args: &TailArgs, selector: &[Pair]) -> anyhow::Result<()> {
    let answer: SeriesAnswer = read(&args.daemon.get("series", selector)?)?;
    for note in &answer.notes {
        print_error(&format!("{}; waiting for a series that matches", screen::text(note)));
    }
    Ok(())
}

fn render(data: &str) -> anyhow::Result<String> {
    let event: TailEvent = serde_json::from_str(data).context("read an event")?;
    if event.skipped > 0 {
        print_error(&format!(
            "skipped {}: the output is read too slowly",
            with_noun(event.skipped, "poll")
        ));
    }
    Ok(event.cells.iter().map(line).collect())
}

fn line(cell: &TailCell) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
    let line = format!(
        "{}  {}  n={} last={} min={} max={} sum={}",
        UnixMillis(cell.start),
        table::name(&cell.series),
        cell.n,
        number(cell.last),
        number(cell.min),
        number(cell.max),
        number(cell.sum)
    );
    fold(&line, screen::columns()) + "\n"
}
