//! The command that scrapes the targets of a file of jobs.

use std::path::PathBuf;

use clap::Args;
use granary_agent_kit::{AgentArgs, Source};

use crate::{Config, MEMORY_MAX, Scrape, Shard};

/// Scrape the Prometheus and OpenMetrics endpoints of a prometheus.yml, without a settings file
#[derive(Debug, Args)]
pub struct ScrapeArgs {
    /// Settings of jobs and targets, in the format of a prometheus.yml
    #[arg(long, value_name = "FILE")]
    scrape_config: PathBuf,
    /// Maximum memory of all targets together, in bytes: series, responses and waiting samples. A
    /// scrape without free memory fails and is counted
    #[arg(long, value_name = "BYTES", default_value_t = MEMORY_MAX)]
    scrape_memory_max: usize,
    /// Share of the targets to scrape, such as 2/5 for the second of five agents with equal settings
    #[arg(long, value_name = "N/COUNT", default_value = "1/1")]
    shard: Shard,
    #[command(flatten)]
    agent: AgentArgs,
}

/// Runs the command until it is stopped.
///
/// # Errors
/// The file of jobs is invalid, or the agent cannot run.
pub fn run(args: &ScrapeArgs) -> anyhow::Result<()> {
    let config = Config::read(&args.scrape_config)?.with_shard(args.shard);
    let scrape = Scrape::start(args.agent.agent_name(), &config, args.scrape_memory_max)?;
    let sources: Vec<Box<dyn Source>> = vec![Box::new(scrape)];
    Ok(granary_agent_kit::run("scrape", &args.agent, sources)?)
}
