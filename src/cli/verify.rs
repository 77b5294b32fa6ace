//! `granary verify`: checks a data directory.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;

use super::{offline::StoppedDir, progress, rebuild, screen};
use crate::{
    clock::{Clock, SystemClock},
    daemon::process_using,
    model::with_noun,
    store::{self, RebuildReport, RebuildWork, VerifyReport},
};

/// The exit code when faults were found.
const FAULTS_FOUND: u8 = 2;

/// Check a data directory or snapshot
///
/// Checks every page, document and cell, and recomputes each granularity from the next finer one
/// where both are stored. No daemon may use the directory; verify a snapshot of a running daemon.
/// Exits with 0 when everything is sound, with 2 when there are faults, with 1 when a check fails.
/// Without `--repair`, nothing is changed.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// The data directory
    dir: PathBuf,
    /// Repair what can be repaired, and check again
    ///
    /// Sets damaged files aside, removes damaged documents and leftovers of interruptions, and
    /// computes lost slots from finer granularities, as `granary rebuild` does.
    #[arg(long)]
    repair: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn verify(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let mut report = check(&args.dir)?;
    if args.repair {
        let before = report;
        let repaired = repair(&args.dir)?;
        report = check(&args.dir)?;
        if args.json {
            let all = json!({ "before": before, "repair": repaired, "after": report });
            screen::print_json(&serde_json::to_string_pretty(&all)?)?;
        } else {
            screen::print(&describe_repair(&before, &repaired, &report))?;
        }
    } else if args.json {
        screen::print_json(&serde_json::to_string_pretty(&report)?)?;
    } else {
        screen::print(&describe(&report))?;
    }
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(FAULTS_FOUND) })
}

/// Repairs a data directory as far as possible.
fn repair(dir: &Path) -> anyhow::Result<RebuildReport> {
    let stopped = StoppedDir::claim(dir, "repair")?;
    let bar = progress::spinner();
    let (work, now) = (RebuildWork::all(), SystemClock.now());
    let outcome = store::rebuild(&stopped.medium, &work, now, &mut |step| {
        bar.set_message(step.to_owned());
    });
    bar.finish_and_clear();
    let recorded = stopped.record("granary verify --repair", "", outcome.is_ok());
    let report = outcome.with_context(|| {
        format!(
            "repair {}: nothing more can be repaired; create a new data directory from a snapshot \
             with `granary restore`",
            dir.display()
        )
    })?;
    recorded.map(|()| report)
}

/// Describes the faults, what was done about them, and what is left.
fn describe_repair(before: &VerifyReport, done: &RebuildReport, after: &VerifyReport) -> String {
    let mut lines = vec![match before.fault_count {
        0 => "before: no faults".to_owned(),
        count => format!("before: {}", with_noun(count, "fault")),
    }];
    lines.extend(faults(before));
    lines.push(rebuild::describe(done, false));
    lines.push(match after.fault_count {
        0 => "after: no faults".to_owned(),
        count => format!(
            "after: {} that cannot be repaired; restore the files from a snapshot",
            with_noun(count, "fault")
        ),
    });
    lines.extend(faults(after));
    lines.extend(after.notes.iter().map(|note| format!("note: {note}")));
    lines.join("\n")
}

/// Returns a line for each fault.
fn faults(report: &VerifyReport) -> Vec<String> {
    let line = |fault: &store::Fault| screen::text(&format!("{}: {}", fault.file, fault.problem));
    let mut lines: Vec<_> = report.faults.iter().map(line).collect();
    let more = report.fault_count - report.faults.len() as u64;
    if more > 0 {
        lines.push(format!("and {}", with_noun(more, "more fault")));
    }
    lines
}

/// Checks a data directory, with a progress bar.
pub(super) fn check(dir: &Path) -> anyhow::Result<VerifyReport> {
    let bar = progress::bar(0);
    let outcome = store::verify(dir, SystemClock.now(), &mut |step| {
        bar.set_length(step.steps);
        bar.set_position(step.done);
        bar.set_message(step.doing.to_owned());
    });
    bar.finish_and_clear();
    // This check only runs after a failure, because it claims the directory for a moment, and a
    // starting daemon would find the directory in use.
    if outcome.is_err()
        && let Some(pid) = process_using(dir)
    {
        bail!(
            "verify {}: the daemon with process id {pid} uses this data directory; stop it, or verify \
             a snapshot: granary verify \"$(granary snapshot)\"",
            dir.display()
        );
    }
    outcome.with_context(|| format!("verify {}", dir.display()))
}

fn describe(report: &VerifyReport) -> String {
    let mut lines = faults(report);
    lines.extend(report.notes.iter().map(|note| format!("note: {note}")));
    lines.push(format!(
        "checked {} ({}): {}, {}, {}, {}, {} recomputed",
        with_noun(report.files, "file"),
        with_noun(report.bytes, "byte"),
        with_noun(report.series, "series"),
        with_noun(report.records, "journal record"),
        with_noun(report.documents, "document"),
        with_noun(report.cells, "cell"),
        with_noun(report.compared, "slot")
    ));
    lines.push(match report.fault_count {
        0 => "no faults".to_owned(),
        count => with_noun(count, "fault"),
    });
    lines.join("\n")
}
