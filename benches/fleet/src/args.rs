//! The command line, and the plan that follows from it.

use std::time::Duration;

use clap::{Parser, ValueEnum};
use granary_agent_kit::unix_ms;
use granary_https::HttpsArgs;

use crate::{
    fleet::{Fleet, HostContent},
    plan::{Plan, Protocol},
};

/// Measure a running daemon with a synthetic fleet
///
/// Each host sends one batch per round with a sample of each metric; three of five metrics are
/// counters. At pace `real`, a round takes the interval, and hosts send at different moments of the
/// interval, as agents do. At pace `max`, the rounds are in the past and are sent as fast as the
/// daemon acknowledges them, several batches per request, as an agent sends its backlog.
/// Acknowledged samples are durable. The hosts ping as agents do. At the end, the series of the
/// run, which have the tag `bench`, and the hosts are deleted.
#[derive(Debug, Parser)]
#[command(
    name = "granary-bench",
    version,
    after_help = "Examples:\n  granary-bench --hosts 1000 --metrics 100 --rounds 60 --pace max
  granary-bench --like host --hosts 50 --history 24h --interval 1m --pace real --keep"
)]
pub struct Args {
    /// Address of the daemon
    #[arg(
        long,
        env = "GRANARY_URL",
        default_value = "http://127.0.0.1:7117",
        value_parser = parse_url
    )]
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) https: HttpsArgs,
    /// Number of hosts
    #[arg(long, default_value_t = 100)]
    pub(crate) hosts: usize,
    /// Content of a host: numbers with made-up names, or the metrics of the host agent with daily
    /// cycles
    #[arg(long, value_enum, default_value_t = HostContent::Numbers)]
    like: HostContent,
    /// Series per host that sends numbers
    #[arg(long, default_value_t = 100)]
    metrics: usize,
    /// Time between two rounds
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    interval: Duration,
    /// Number of rounds
    #[arg(long, default_value_t = 60)]
    rounds: usize,
    /// Span before now that is sent as fast as the daemon acknowledges it: before the rounds at
    /// pace real, otherwise instead of them
    #[arg(long, value_parser = humantime::parse_duration)]
    history: Option<Duration>,
    /// Time between the last round and now, at pace max
    #[arg(long, default_value = "0s", value_parser = humantime::parse_duration)]
    ended: Duration,
    /// Number of connections (default: 64 at pace real, otherwise 8)
    #[arg(long)]
    connections: Option<usize>,
    /// Protocol: Granary's own, or Prometheus remote write, which other stores accept too
    #[arg(long, value_enum, default_value_t = Protocol::Native)]
    protocol: Protocol,
    /// Hosts per request
    #[arg(long, default_value_t = 1)]
    hosts_per_request: usize,
    /// Batches of a host per request, at pace max
    #[arg(long, default_value_t = 10)]
    batches_per_request: usize,
    /// Pace of the rounds
    #[arg(long, value_enum, default_value_t = Pace::Max)]
    pace: Pace,
    /// Keep the series and hosts of the run
    #[arg(long)]
    pub(crate) keep: bool,
    /// Print JSON only
    #[arg(long)]
    pub(crate) json: bool,
}

/// The pace of the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Pace {
    /// One round per interval.
    Real,
    /// Rounds follow each other as fast as the daemon acknowledges them.
    Max,
    /// Rounds follow each other as fast as possible: requests refused with 429 are repeated at
    /// once.
    Flood,
}

impl Args {
    /// Returns the plan of the run.
    pub(crate) fn plan(&self) -> anyhow::Result<Plan> {
        let interval_ms = i64::try_from(self.interval.as_millis())?;
        anyhow::ensure!(interval_ms > 0, "--interval must be 1ms or more");
        anyhow::ensure!(
            self.hosts > 0 && self.metrics > 0 && self.rounds > 0,
            "--hosts, --metrics and --rounds must be 1 or more"
        );
        anyhow::ensure!(
            self.like == HostContent::Numbers || self.protocol == Protocol::Native,
            "--like host sends the host agent's metrics: remove --protocol"
        );
        let rounds_in = |span: Duration| span.as_millis() as usize / interval_ms as usize;
        let history = self.history.map(rounds_in);
        let is_paced = self.pace == Pace::Real;
        let past_rounds = history.unwrap_or(if is_paced { 0 } else { self.rounds });
        let rounds = if is_paced { past_rounds.saturating_add(self.rounds) } else { past_rounds };
        anyhow::ensure!(
            !is_paced || self.ended.is_zero(),
            "--ended: rounds at pace real end now: remove --pace real or --ended"
        );
        let now_ms = unix_ms();
        let end_ms = now_ms.saturating_sub(i64::try_from(self.ended.as_millis())?);
        let connections = if is_paced { 64 } else { 8 };
        Ok(Plan {
            fleet: Fleet {
                hosts: self.hosts,
                metrics: self.metrics,
                epoch: now_ms,
                like: self.like,
            },
            rounds,
            start_ms: end_ms.saturating_sub(interval_ms.saturating_mul(past_rounds as i64)),
            interval: self.interval,
            connections: self.connections.unwrap_or(connections).clamp(1, self.hosts),
            protocol: self.protocol,
            hosts_per_request: self.hosts_per_request.max(1),
            batches_per_request: self.batches_per_request.max(1),
            paced_from: past_rounds,
            waits_when_busy: self.pace != Pace::Flood,
            reports_minutes: !self.json,
        })
    }
}

/// Parses the address of a server; the scheme and a slash at the end are optional.
fn parse_url(text: &str) -> Result<String, String> {
    let text = text.trim();
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let with_scheme = with_scheme.trim_end_matches('/').to_owned();
    let uri: Result<ureq::http::Uri, _> = with_scheme.parse();
    match uri.ok().map(|uri| (uri.scheme_str().map(str::to_owned), uri.host().map(str::to_owned))) {
        Some((Some(scheme), Some(host)))
            if matches!(&*scheme, "http" | "https") && !host.is_empty() =>
        {
            Ok(with_scheme)
        }
        _ => Err("must be an address such as http://127.0.0.1:7117".to_owned()),
    }
}
