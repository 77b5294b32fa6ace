//! `granary snapshot` and `granary restore`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;

use super::{flags::ClientArgs, http::read, progress, screen::print_error, verify};
use crate::{cluster, model::with_noun, store};

/// Copy the data of a running daemon, as of one moment
///
/// The daemon writes the copy to its `storage.snapshot_dir` and keeps running. The path of the copy
/// is printed; it can be verified, restored and archived like any data directory.
#[derive(Debug, Args)]
#[command(mut_arg("json", |json| json.help("Print the daemon's JSON answer instead of the path")))]
pub(super) struct SnapshotArgs {
    #[command(flatten)]
    client: ClientArgs,
}

/// Create a data directory from a snapshot
///
/// The snapshot is verified first. Afterwards, start the daemon on the new directory.
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// Folder of the snapshot
    snapshot: PathBuf,
    /// Data directory to create; it must be empty or not exist yet
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Do not verify the snapshot first
    #[arg(long)]
    no_verify: bool,
}

pub(super) fn snapshot(args: &SnapshotArgs) -> anyhow::Result<ExitCode> {
    let answer = args.client.daemon.post_empty("admin/snapshot")?;
    args.client.print(&answer, || {
        let made: serde_json::Value = read(&answer)?;
        Ok(made["path"].as_str().unwrap_or_default().to_owned())
    })
}

pub(super) fn restore(args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    if !args.no_verify && !verify::check(&args.snapshot)?.is_sound() {
        bail!(
            "the snapshot has faults; see `granary verify {}`; --no-verify restores it as it is",
            args.snapshot.display()
        );
    }
    let bar = progress::spinner();
    let report = store::restore(&args.snapshot, &args.data_dir, &mut |file| {
        bar.set_message(format!("copying {file}"));
    })
    .with_context(|| describe(&args.snapshot, &args.data_dir))?;
    bar.finish_and_clear();
    // A snapshot has none of these files, but the copy of a node's directory has.
    cluster::remembered::forget(&args.data_dir).context("forget the log of the cluster")?;
    print_error(&format!(
        "restored {}, {}, to {}",
        with_noun(report.files, "file"),
        with_noun(report.bytes, "byte"),
        args.data_dir.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn describe(from: &Path, to: &Path) -> String {
    format!("restore {} to {}", from.display(), to.display())
}
