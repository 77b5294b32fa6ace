//! `granary verify`: checks a data directory.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;

use super::{progress, screen};
use crate::{
    clock::{Clock, SystemClock},
    daemon::process_using,
    model::with_noun,
    store::{self, VerifyReport},
};

/// The exit code when faults were found.
const FAULTS_FOUND: u8 = 2;

/// Check a data directory or snapshot without changing it
///
/// Checks every page, document and cell, and recomputes each granularity from the next finer one
/// where both are stored. No daemon may use the directory; verify a snapshot of a running daemon.
/// Exits with 0 when everything is sound, with 2 when there are faults, with 1 when a check fails.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// The data directory
    dir: PathBuf,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn verify(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let report = check(&args.dir)?;
    if args.json {
        screen::print_json(&serde_json::to_string_pretty(&report)?)?;
    } else {
        screen::print(&describe(&report))?;
    }
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(FAULTS_FOUND) })
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
    let mut lines: Vec<_> = report
        .faults
        .iter()
        .map(|fault| screen::text(&format!("{}: {}", fault.file, fault.problem)))
        .collect();
    let more = report.fault_count - report.faults.len() as u64;
    if more > 0 {
        lines.push(format!("and {}", with_noun(more, "more fault")));
    }
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
