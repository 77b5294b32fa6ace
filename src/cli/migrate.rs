//! `granary migrate`: an embedded data directory becomes that of a cluster's first node, and back.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::{Args, ValueEnum};

use super::{offline::StoppedDir, screen};
use crate::{
    clock::{Clock, SystemClock},
    cluster,
    store::{self, StoreHome},
};

/// Convert a data directory of an embedded daemon for a cluster, or back
///
/// Stop the daemon first. All samples, series and objects stay: the command compares every level
/// before and after. Only the directory of the node that held the store last becomes embedded,
/// after a clean shutdown of all nodes: the command refuses a directory that lacks records of the
/// log. An interrupted run can be repeated.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary migrate --to cluster /var/lib/granary
      Then start this node on an empty database first
  granary migrate --to embedded --through 81723 /var/lib/granary
      Then start the daemon without cluster.uri")]
pub(super) struct MigrateArgs {
    /// The kind of daemon that uses the directory from now on
    #[arg(long, value_enum)]
    to: Target,
    /// The last record of the cluster's log, for embedded: the last holder logged it when it handed
    /// the store over
    #[arg(long, value_name = "RECORD", required_if_eq("to", "embedded"))]
    through: Option<u64>,
    /// The data directory
    dir: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Target {
    /// The first node of a new cluster
    Cluster,
    /// A daemon without a cluster
    Embedded,
}

pub(super) fn migrate(args: &MigrateArgs) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.through.is_none() || matches!(args.to, Target::Embedded),
        "--through is only for --to embedded"
    );
    let stopped = StoppedDir::claim(&args.dir, "migrate")?;
    let others = cluster::shards::folder(&args.dir);
    anyhow::ensure!(
        !others.exists(),
        "{} has shards of a cluster with several shards, which cannot be migrated: nothing was \
         changed",
        others.display()
    );
    let (home, kind, next) = match args.to {
        Target::Cluster => (
            StoreHome::Cluster,
            "the first node of a new cluster",
            "start it on an empty database before the other nodes",
        ),
        Target::Embedded => {
            (StoreHome::Embedded, "an embedded daemon", "start it without cluster.uri")
        }
    };
    let context = || format!("migrate {}", args.dir.display());
    let now = SystemClock.moment();
    let report = store::migrate(&stopped.medium, home, args.through, now).with_context(context)?;
    // The directory belongs to no log of a cluster any more, or to none yet.
    if !report.was_done || matches!(args.to, Target::Embedded) {
        cluster::remembered::forget(&args.dir).with_context(context)?;
    }
    let was = if report.was_done { "belonged" } else { "belongs" };
    screen::print(&format!(
        "{} {was} to {kind}, with all records up to {}; compared {}: {next}",
        args.dir.display(),
        report.through,
        report.levels.join(", "),
    ))
}
