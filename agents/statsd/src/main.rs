//! The program: it parses the arguments and runs the agent.

use std::{net::SocketAddr, process::ExitCode};

use clap::Parser;
use granary_agent_kit::{AgentArgs, Source};
use granary_agent_statsd::{Limits, StatsD};

/// Receives StatsD and DogStatsD metrics over UDP and delivers them to granary.
///
/// Counters become deltas, and gauges stay gauges. Timers, histograms and distributions become
/// count, sum, min, max and a native histogram, whose quantiles have an error of at most 0.55 %.
/// Sets become the number of their members. Sums and counts are exact.
#[derive(Debug, Parser)]
#[command(name = "granary-agent-statsd", version)]
struct Args {
    /// Address and UDP port to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8125")]
    statsd_listen: SocketAddr,
    /// Maximum number of series in an interval; lines beyond it are dropped and counted
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    statsd_series_max: usize,
    /// Maximum memory of an interval's series and readings, in bytes; lines beyond it are dropped
    /// and counted, and timers have wider buckets
    #[arg(long, value_name = "BYTES", default_value_t = 12 << 20)]
    statsd_memory_max: usize,
    /// Deliver the quantiles 0.5, 0.95 and 0.99 of each interval, of a sample of at most 4096
    /// values, instead of native histograms
    #[arg(long)]
    statsd_quantiles: bool,
    #[command(flatten)]
    agent: AgentArgs,
}

fn main() -> ExitCode {
    granary_agent_kit::exit_code("granary-agent-statsd", start(&Args::parse()))
}

fn start(args: &Args) -> anyhow::Result<()> {
    let limits = Limits {
        series_max: args.statsd_series_max,
        memory_max: args.statsd_memory_max,
        has_quantiles: args.statsd_quantiles,
    };
    let statsd = StatsD::listen(args.agent.agent_name(), args.statsd_listen, limits)?;
    let sources: Vec<Box<dyn Source>> = vec![Box::new(statsd)];
    Ok(granary_agent_kit::run("statsd", &args.agent, sources)?)
}
