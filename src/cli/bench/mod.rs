//! `granary bench`: a synthetic fleet that drives a running daemon over the native protocol.

mod fleet;
mod host_like;
mod load;
mod outcome;
mod pings;
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
use fleet::{Fleet, Like};

/// Measure a running daemon with a synthetic fleet
///
/// Each host sends one batch a round with a sample of each metric, three of five metrics being
/// counters. At pace `real` a round lasts the interval, and hosts send at moments all over it, as
/// agents do. At pace `max` the rounds lie in the past and are sent as fast as they are
/// acknowledged, several batches in a request, as an agent sends its backlog. Every acknowledgement
/// is durable. The hosts ping as agents do. The series that it made, all with the tag `bench`, and
/// the hosts are deleted at the end.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  granary bench --hosts 1000 --metrics 100 --rounds 60 --pace max
  granary bench --like host --hosts 50 --history 24h --interval 1m --pace real --keep"
)]
pub(super) struct BenchArgs {
    #[command(flatten)]
    daemon: Daemon,
    /// Hosts in the fleet
    #[arg(long, default_value_t = 100)]
    hosts: usize,
    /// What a host sends: numbers with made-up names, or what the host agent sends, with values
    /// that rise and fall by the day
    #[arg(long, value_enum, default_value_t = Like::Numbers)]
    like: Like,
    /// Series of each host that sends numbers
    #[arg(long, default_value_t = 100)]
    metrics: usize,
    /// Time between two rounds
    #[arg(long, default_value = "10s")]
    interval: Span,
    /// Rounds to send
    #[arg(long, default_value_t = 60)]
    rounds: usize,
    /// Send samples of so long ago up to now first, as fast as they are acknowledged: before the
    /// rounds at pace real, else in their place
    #[arg(long)]
    history: Option<Span>,
    /// Connections that send at the same time; 8 when not told, and 64 at pace real, where each
    /// agent has one of its own
    #[arg(long)]
    connections: Option<usize>,
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

/// Hosts that are removed with one request.
const HOSTS_AT_ONCE: usize = 10_000;

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
    let plan = plan(args)?;
    let before = report::DaemonUse::read(&args.daemon)?;
    let outcome = load::run(&plan)?;
    let after = report::DaemonUse::read(&args.daemon)?;
    report::print(&report::Report::new(&outcome, &before, &after), args.json)?;
    if !args.keep {
        clean_up(args, &plan.fleet);
    }
    let sent = plan.samples(0..args.hosts, 0..plan.rounds);
    Ok(if outcome.accepted() == sent { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the arguments ask for.
fn plan(args: &BenchArgs) -> anyhow::Result<load::Plan> {
    let fixed = |name, span| match span {
        Span::Fixed(ms) if ms > 0 => Ok(ms),
        Span::Fixed(_) | Span::Months(_) => {
            anyhow::bail!("--{name} must be in days or smaller units, and more than nothing")
        }
    };
    let interval_ms = fixed("interval", args.interval)?;
    let history_ms = args.history.map(|span| fixed("history", span)).transpose()?;
    let history = history_ms.map(|ms| usize::try_from(ms / interval_ms)).transpose()?;
    anyhow::ensure!(args.hosts > 0 && args.metrics > 0 && args.rounds > 0, "nothing to send");
    anyhow::ensure!(
        args.like == Like::Numbers || args.protocol == Speech::Native,
        "--like host sends what Granary's own agents send: leave --protocol out"
    );
    let (past, rounds) = match (args.pace, history) {
        (Pace::Real, past) => (past.unwrap_or(0), past.unwrap_or(0).saturating_add(args.rounds)),
        (Pace::Max | Pace::Flood, past) => {
            (past.unwrap_or(args.rounds), past.unwrap_or(args.rounds))
        }
    };
    let now = SystemClock.now();
    let metrics = args.metrics;
    let by_default = if args.pace == Pace::Real { 64 } else { 8 };
    Ok(load::Plan {
        url: args.daemon.url.clone(),
        fleet: Fleet { hosts: args.hosts, metrics, epoch: now.0, like: args.like },
        rounds,
        start: now.minus(interval_ms.saturating_mul(past as i64)),
        interval: Duration::from_millis(interval_ms as u64),
        connections: args.connections.unwrap_or(by_default).clamp(1, args.hosts),
        speech: args.protocol,
        hosts_per_request: args.hosts_per_request.max(1),
        batches_per_request: args.batches_per_request.max(1),
        paced_from: past,
        patient: args.pace != Pace::Flood,
        tells_minutes: !args.json,
    })
}

/// Deletes the series and hosts of this run; says so when it cannot.
fn clean_up(args: &BenchArgs, fleet: &Fleet) {
    let (daemon, epoch) = (&args.daemon, fleet.epoch);
    let own = json!({ "selector": { "tags": { "bench": epoch.to_string() } }, "dry_run": false });
    if let Err(cause) = daemon.post_json("admin/series/delete", &own) {
        complain(&format!("the series with the tag bench={epoch} are left: {cause:#}"));
    }
    if args.protocol != Speech::Native {
        return;
    }
    let names: Vec<String> = (0..fleet.hosts).map(|host| fleet.name(host)).collect();
    for names in names.chunks(HOSTS_AT_ONCE) {
        if let Err(cause) = daemon.post_json("admin/hosts/remove", &json!({ "hosts": names })) {
            complain(&format!("the hosts of this run are left: {cause:#}"));
        }
    }
}
