//! `granary rebuild`: computes coarser granularities from finer ones.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, bail};
use clap::Args;

use super::{import::time_of, offline::StoppedDir, progress, screen};
use crate::{
    clock::{Clock, SystemClock},
    model::{UnixMillis, with_noun},
    store::{self, RebuildReport, RebuildWork, RebuiltLevel, RebuiltTimes},
};

/// The width of the summary.
const COLUMNS: usize = 80;
/// The number of ranges of time that the summary lists for a granularity.
const RANGES_SHOWN: usize = 6;

/// Compute missing slots of a coarser granularity from the next finer one
///
/// Slots are missing where data was damaged or lost, and before a granularity was added or its
/// retention was raised. Cells that exist are not counted twice: a slot is replaced as a whole.
/// Stop the daemon first. An interrupted run can be repeated.
#[derive(Debug, Args)]
pub(super) struct RebuildArgs {
    /// The data directory
    dir: PathBuf,
    /// Granularity to rebuild, such as 1h; may be repeated; all by default
    #[arg(long = "granularity", value_name = "NAME")]
    granularities: Vec<String>,
    /// Start: 2026-11-21T08:00:00Z or 2026-11-21 [default: everything]
    #[arg(long, value_name = "TIME", value_parser = time_of)]
    start: Option<UnixMillis>,
    /// End, exclusive
    #[arg(long, value_name = "TIME", value_parser = time_of)]
    end: Option<UnixMillis>,
    /// Only show what is missing and what can be computed
    #[arg(long)]
    dry_run: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn rebuild(args: &RebuildArgs) -> anyhow::Result<ExitCode> {
    let stopped = StoppedDir::claim(&args.dir, "rebuild")?;
    let range = args.start.unwrap_or(UnixMillis::EARLIEST)..args.end.unwrap_or(UnixMillis::LATEST);
    if range.is_empty() {
        bail!("--start is not before --end");
    }
    let work = RebuildWork { range, granularities: args.granularities.clone() };
    let bar = progress::spinner();
    let (now, mut progress) = (SystemClock.now(), |step: &str| bar.set_message(step.to_owned()));
    let outcome = if args.dry_run {
        store::plan_rebuild(&args.dir, &work, now, &mut progress)
    } else {
        store::rebuild(&stopped.medium, &work, now, &mut progress)
    };
    bar.finish_and_clear();
    if !args.dry_run {
        let levels = args.granularities.join(", ");
        stopped.record("granary rebuild", &levels, outcome.is_ok())?;
    }
    let report = outcome.with_context(|| format!("rebuild {}", args.dir.display()))?;
    if args.json {
        return screen::print_json(&serde_json::to_string_pretty(&report)?);
    }
    screen::print(&describe(&report, args.dry_run))
}

/// Returns the summary of a rebuild.
pub(super) fn describe(report: &RebuildReport, is_dry: bool) -> String {
    let verb = if is_dry { "would do: " } else { "" };
    let done = |text: &String| format!("{verb}{}", screen::text(text));
    let mut lines: Vec<String> = report.dropped.iter().map(done).collect();
    for level in &report.levels {
        lines.extend(describe_level(level, is_dry));
    }
    let lines: Vec<_> = lines.iter().map(|line| screen::fold(line, COLUMNS)).collect();
    lines.join("\n")
}

fn describe_level(level: &RebuiltLevel, is_dry: bool) -> Vec<String> {
    let RebuiltLevel { granularity, from, rebuilt, missing, cells, documents, larger } = level;
    let mut lines = Vec::new();
    if rebuilt.is_empty() && missing.is_empty() {
        return vec![format!("{granularity}: complete")];
    }
    if !rebuilt.is_empty() {
        let verb = if is_dry { "can be rebuilt" } else { "rebuilt" };
        lines.push(format!("{granularity}: {verb} from {from}"));
        lines.extend(ranges(rebuilt));
        if !is_dry {
            lines.push(format!(
                "  {} in {} written",
                with_noun(*cells, "cell"),
                with_noun(*documents, "document")
            ));
        }
    }
    if *larger > 0 {
        let larger = with_noun(*larger, "cell");
        lines.push(format!("  {larger} kept, with more samples than {from} has"));
    }
    if !missing.is_empty() {
        lines.push(format!("{granularity}: still missing, because {from} lacks the time, too"));
        lines.extend(ranges(missing));
    }
    lines
}

fn ranges(all: &[RebuiltTimes]) -> Vec<String> {
    let shown = all.iter().take(RANGES_SHOWN);
    let line = |range: &RebuiltTimes| {
        format!("  {} to {}", UnixMillis(range.start), UnixMillis(range.end))
    };
    let mut lines: Vec<_> = shown.map(line).collect();
    if all.len() > RANGES_SHOWN {
        lines.push(format!("  and {} more", all.len() - RANGES_SHOWN));
    }
    lines
}
