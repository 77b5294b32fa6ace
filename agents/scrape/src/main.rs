//! The program: it parses the arguments and runs the agent.

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use granary_agent_kit::{AgentArgs, Source};
use granary_agent_scrape::{Config, MEMORY_MAX, Scrape};

/// Scrapes Prometheus and OpenMetrics endpoints and delivers their samples to granary.
#[derive(Debug, Parser)]
#[command(name = "granary-agent-scrape", version)]
struct Args {
    /// Settings of jobs and targets, in the format of a prometheus.yml
    #[arg(long, value_name = "FILE")]
    scrape_config: PathBuf,
    /// Maximum memory of all targets together, in bytes: series, responses and waiting samples. A
    /// scrape without free memory fails and is counted
    #[arg(long, value_name = "BYTES", default_value_t = MEMORY_MAX)]
    scrape_memory_max: usize,
    #[command(flatten)]
    agent: AgentArgs,
}

fn main() -> ExitCode {
    granary_agent_kit::exit_code("granary-agent-scrape", start(&Args::parse()))
}

fn start(args: &Args) -> anyhow::Result<()> {
    let config = Config::read(&args.scrape_config)?;
    let scrape = Scrape::start(args.agent.agent_name(), &config, args.scrape_memory_max)?;
    let sources: Vec<Box<dyn Source>> = vec![Box::new(scrape)];
    Ok(granary_agent_kit::run("scrape", &args.agent, sources)?)
}
