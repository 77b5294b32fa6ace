//! `granary snapshot` and `granary restore`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;

use super::{complain, http, screen, verify};
use crate::store;

/// Copy the data of a running daemon, as it is at one moment
///
/// The daemon makes the copy in its `storage.snapshot_dir` and goes on meanwhile. The folder's
/// path is printed; it can be verified, restored and archived like any data directory.
#[derive(Debug, Args)]
pub(super) struct SnapshotArgs {
    /// Where the daemon listens
    #[arg(long, env = "GRANARY_URL", default_value = http::DEFAULT_URL, value_parser = http::url)]
    url: String,
    /// Print the daemon's JSON answer instead of the path
    #[arg(long)]
    json: bool,
}

/// Make a data directory of a snapshot
///
/// The snapshot is verified first. Start the daemon on the new directory afterwards.
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// Folder of the snapshot
    snapshot: PathBuf,
    /// Data directory to make; it must be empty or not exist yet
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Do not verify the snapshot first
    #[arg(long)]
    no_verify: bool,
}

pub(super) fn snapshot(args: &SnapshotArgs) -> anyhow::Result<ExitCode> {
    let body = http::post(&args.url, "admin/snapshot")?;
    let answer: serde_json::Value = serde_json::from_str(&body).context("read the answer")?;
    let path = answer["path"].as_str().unwrap_or_default();
    if args.json { screen::print_json(&body) } else { screen::print(path) }
}

pub(super) fn restore(args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    if !args.no_verify && !verify::check(&args.snapshot)?.is_sound() {
        bail!(
            "the snapshot has faults: see `granary verify {}`; --no-verify restores it as it is",
            args.snapshot.display()
        );
    }
    let bar = super::progress::spinner();
    let report = store::restore(&args.snapshot, &args.data_dir, &mut |file| {
        bar.set_message(format!("copying {file}"));
    })
    .with_context(|| describe(&args.snapshot, &args.data_dir))?;
    bar.finish_and_clear();
    complain(&format!(
        "restored {} files, {} bytes, to {}",
        report.files,
        report.bytes,
        args.data_dir.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn describe(from: &Path, to: &Path) -> String {
    format!("restore {} to {}", from.display(), to.display())
}
