//! `granary bench`: a synthetic fleet that drives a running daemon over the native protocol.

mod fleet;
mod load;
mod remote_write;
mod report;

use std::{process::ExitCode, time::Duration};

use clap::{Args, ValueEnum};
use serde_json::json;

use super::{http::Daemon, screen::complain};
use crate::{
    clock::{Clock, SystemClock},
    model::Span,
};

/// Measure a running daemon with a synthetic fleet
///
/// Each host sends one batch a round with a sample of each metric, three of five metrics being
/// counters. At pace `real` a round lasts the interval. At pace `max` the rounds lie in the past
/// and are sent as fast as they are acknowledged, several batches in a request, as an agent sends
/// its backlog. Every acknowledgement is durable. The series that it made, all with the tag
/// `bench`, are deleted at the end.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  granary bench --hosts 1000 --metrics 100 --rounds 60 --pace max"
)]
pub(super) struct BenchArgs {
    #[command(flatten)]
    daemon: Daemon,
    /// Hosts in the fleet
    #[arg(long, default_value_t = 100)]
    hosts: usize,
    /// Series of each host
    #[arg(long, default_value_t = 100)]
    metrics: usize,
    /// Time between two rounds
    #[arg(long, default_value = "10s")]
    interval: Span,
    /// Rounds to send
    #[arg(long, default_value_t = 60)]
    rounds: usize,
    /// Connections that send at the same time
    #[arg(long, default_value_t = 8)]
    connections: usize,
    /// What is spoken: Granary's own protocol, or Prometheus remote write, which other stores take
    /// at the same path
    #[arg(long, value_enum, default_value_t = Speech::Native)]
    protocol: Speech,
    /// Hosts whose samples share a request
    #[arg(long, default_value_t = 1)]
    hosts_per_request: usize,
    /// Batches of one host in a request, at pace max
    #[arg(long, default_value_t = 10)]
    batches_per_request: usize,
    /// How fast rounds follow each other
    #[arg(long, value_enum, default_value_t = Pace::Max)]
    pace: Pace,
    /// Leave the series that were made
    #[arg(long)]
    keep: bool,
    /// Print JSON only
    #[arg(long)]
    json: bool,
}

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Speech {
    /// BSON batches, numbered.
    Native,
    /// Prometheus remote write 1.0.
    RemoteWrite,
}

/// How fast rounds follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Pace {
    /// One round each interval.
    Real,
    /// As fast as acknowledged.
    Max,
    /// The same, but what is refused with 429 comes again at once: more than the daemon takes.
    Flood,
}

pub(super) fn bench(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    let Span::Fixed(interval_ms) = args.interval else {
        anyhow::bail!("--interval must be in days or smaller units");
    };
    anyhow::ensure!(args.hosts > 0 && args.metrics > 0 && args.rounds > 0, "nothing to send");
    let now = SystemClock.now();
    let start = match args.pace {
        Pace::Real => now,
        Pace::Max | Pace::Flood => now.minus(interval_ms * args.rounds as i64),
    };
    let plan = load::Plan {
        url: args.daemon.url.clone(),
        fleet: fleet::Fleet { hosts: args.hosts, metrics: args.metrics, epoch: now.0 },
        rounds: args.rounds,
        start,
        interval: Duration::from_millis(interval_ms as u64),
        connections: args.connections.clamp(1, args.hosts),
        speech: args.protocol,
        hosts_per_request: args.hosts_per_request.max(1),
        batches_per_request: match args.pace {
            Pace::Real => 1,
            Pace::Max | Pace::Flood => args.batches_per_request.max(1),
        },
        paced: args.pace == Pace::Real,
        patient: args.pace != Pace::Flood,
    };
    let before = report::DaemonUse::read(&args.daemon)?;
    let outcome = load::run(&plan)?;
    let after = report::DaemonUse::read(&args.daemon)?;
    report::print(&report::Report::new(&outcome, &before, &after), args.json)?;
    if !args.keep {
        clean_up(&args.daemon, plan.fleet.epoch);
    }
    let sent = (args.hosts * args.metrics * args.rounds) as u64;
    Ok(if outcome.accepted == sent { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Deletes the series of this run; says so when it cannot.
fn clean_up(daemon: &Daemon, epoch: i64) {
    let own = json!({ "selector": { "tags": { "bench": epoch.to_string() } }, "dry_run": false });
    if let Err(cause) = daemon.post_json("admin/series/delete", &own) {
        complain(&format!("the series with the tag bench={epoch} are left: {cause:#}"));
    }
}
