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

/// Let a data directory change between an embedded daemon and a cluster
///
/// Stop the daemon first. All samples, series and objects stay: the command compares every level
/// before and after. Each node of the cluster must be stopped in order before its directory becomes
/// embedded. An interrupted run can be repeated.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary migrate --to cluster /var/lib/granary     Then start this node on an empty database first
  granary migrate --to embedded /var/lib/granary    Then start the daemon without cluster.uri")]
pub(super) struct MigrateArgs {
    /// The kind of daemon that uses the directory from now on
    #[arg(long, value_enum)]
    to: Target,
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
    let stopped = StoppedDir::claim(&args.dir, "migrate")?;
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
    let report =
        store::migrate(&stopped.medium, home, SystemClock.moment()).with_context(context)?;
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
