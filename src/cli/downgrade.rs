//! `granary downgrade`: the way back to an older release.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::Args;

use super::{offline::StoppedDir, progress, screen};
use crate::{
    model::with_noun,
    store::{self, DOWNGRADE_VERSION, FORMAT_VERSION},
};

/// Convert a data directory to the previous format, for an older release
///
/// All samples, series and objects stay, except keys, users, and texts of rules and receivers: the
/// older release has no access control, so keep it on loopback. Preallocated documents without
/// samples are removed; the older release preallocates again. Stop the daemon first. An interrupted
/// run can be repeated.
#[derive(Debug, Args)]
pub(super) struct DowngradeArgs {
    /// The data directory
    dir: PathBuf,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn downgrade(args: &DowngradeArgs) -> anyhow::Result<ExitCode> {
    let stopped = StoppedDir::claim(&args.dir, "downgrade")?;
    let bar = progress::bar(0);
    let outcome = store::downgrade(&stopped.medium, &mut |file, done, steps| {
        bar.set_length(steps);
        bar.set_position(done);
        bar.set_message(file.to_owned());
    });
    bar.finish_and_clear();
    let report = outcome.with_context(|| format!("downgrade {}", args.dir.display()))?;
    if args.json {
        return screen::print_json(&serde_json::to_string_pretty(&report)?);
    }
    if report.lowered == 0 {
        return screen::print(&format!("all files already have format {DOWNGRADE_VERSION}"));
    }
    let keys = match (report.keys, report.users) {
        (0, 0) => String::new(),
        (keys, users) => format!(
            ", {} and {}; the older release has no access control: keep it on loopback",
            with_noun(keys, "key"),
            with_noun(users, "user")
        ),
    };
    let texts = match report.texts {
        0 => String::new(),
        texts => format!(", and {} of rules and receivers", with_noun(texts, "saved text")),
    };
    screen::print(&format!(
        "converted {} of {} from format {FORMAT_VERSION} to format {DOWNGRADE_VERSION}, \
         removed {}{texts}{keys}",
        report.lowered,
        with_noun(report.files, "file"),
        with_noun(report.shells, "preallocated document")
    ))
}
