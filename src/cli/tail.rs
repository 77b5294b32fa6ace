//! `granary tail`: prints cells of a running daemon as they change.

use std::{
    io::{self, BufRead, BufReader, Write},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;

use super::{
    flags::{TagsArgs, given},
    http::{Daemon, Pair, read},
    screen::{self, complain, fold},
    table::{self, short},
};
use crate::{
    model::{UnixMillis, counted},
    query::{SeriesAnswer, TailCell, TailEvent},
};

/// Bytes of one event, at most.
const EVENT_BYTES_MAX: u64 = 64 << 20;

/// Print what changes of some series, as samples are accepted
///
/// A line for each cell that is new or changed, at most once a second, until Ctrl-C. Looked at are
/// the slot under way and the two before it.
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
    /// A granularity of the daemon [default: its finest]
    #[arg(long)]
    resolution: Option<String>,
    /// Do not begin with the cells as they are
    #[arg(long)]
    no_state: bool,
    /// Print each event as the daemon's JSON
    #[arg(long)]
    json: bool,
}

impl TailArgs {
    fn selector(&self) -> Vec<Pair> {
        given([("metric", self.metric.clone())]).chain(self.tags.pairs()).collect()
    }
}

pub(super) fn tail(args: &TailArgs) -> anyhow::Result<ExitCode> {
    let mut pairs = args.selector();
    say_what_is_missing(args, &pairs)?;
    pairs.extend(given([("resolution", args.resolution.clone())]));
    pairs.push(("state", (!args.no_state).to_string()));
    let mut lines = BufReader::new(args.daemon.stream("tail", &pairs)?);
    let (mut event, mut line) = (String::new(), String::new());
    loop {
        line.clear();
        let read = io::Read::take(&mut lines, EVENT_BYTES_MAX).read_line(&mut line);
        if read.context("read the tail")? == 0 {
            complain("the daemon ended the tail");
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
            // The reader, such as `head`, has seen enough.
            Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(ExitCode::SUCCESS);
            }
            outcome => outcome?,
        }
    }
}

/// Says why nothing will come, unless such a series begins.
fn say_what_is_missing(args: &TailArgs, selector: &[Pair]) -> anyhow::Result<()> {
    let answer: SeriesAnswer = read(&args.daemon.get("series", selector)?)?;
    for note in &answer.notes {
        complain(&format!("{}; waiting for one that matches", screen::text(note)));
    }
    Ok(())
}

fn render(data: &str) -> anyhow::Result<String> {
    let event: TailEvent = serde_json::from_str(data).context("read an event")?;
    if event.skipped > 0 {
        complain(&format!("skipped {}: this end reads too slowly", counted(event.skipped, "look")));
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
