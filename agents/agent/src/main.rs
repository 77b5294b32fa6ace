//! The agent program: several collectors, configured by one file, with one spool and one delivery.
//!
//! `settings` reads the file, `collectors` turns it into a plan. Must never know: what a collector
//! measures, and how samples are delivered.

mod collectors;
mod discover;
mod enroll;
mod settings;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};
use granary_agent_kit::{AgentArgs, Plan, Planner};

use crate::{
    collectors::Collectors, discover::DiscoverArgs, enroll::EnrollArgs, settings::Settings,
};

/// The end of the help.
const ENVIRONMENT: &str = "\
Environment:
  GRANARY_KERNEL_CLOCK=yes  Ask the kernel for the clock's offset even under a filter of system
                            calls, which must permit adjtimex; not needed with chrony
  MIMALLOC_PURGE_DELAY=0    Return freed memory to the system at once";

/// Collects metrics of this host, Prometheus exporters, StatsD clients, MongoDB, Redis, nginx,
/// PostgreSQL and MySQL servers, scripts and Nagios plugins, configured by one file, and delivers
/// them to granary.
#[derive(Debug, Parser)]
#[command(name = "granary-agent", version, after_help = ENVIRONMENT)]
struct Args {
    /// Settings file; SIGHUP reloads it
    #[arg(long, value_name = "FILE", default_value = "/etc/granary/agent.toml", global = true)]
    config: PathBuf,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Collect and deliver until SIGTERM or SIGINT (the default command)
    Run {
        /// Number of rounds after which the agent delivers and exits
        #[arg(long, value_name = "N")]
        rounds: Option<u64>,
    },
    /// Collect one round, print the readings of all collectors and targets, and check that the
    /// daemon answers; nothing is sent
    Test,
    /// Get a key of the daemon for this host with a one-time code, and write it to the key file;
    /// the agent renews the key before it expires
    Enroll(EnrollArgs),
    #[cfg(feature = "mongodb")]
    Mongodb(granary_agent_mongodb::MongoDbArgs),
    Scrape(granary_agent_scrape::ScrapeArgs),
    /// Write man pages and shell completions into a folder
    #[command(hide = true)]
    WriteManual {
        /// The folder, which is created
        folder: PathBuf,
    },
    /// Print settings for the services that listen on this host: databases, web servers, message
    /// brokers, proxies, and programs that serve /metrics
    Discover(DiscoverArgs),
}

fn main() -> ExitCode {
    granary_agent_kit::exit_code("granary-agent", start(Args::parse()))
}

fn start(Args { config, command }: Args) -> anyhow::Result<()> {
    match command {
        Some(Command::Enroll(enroll)) => enroll::run(enroll, &config),
        Some(Command::Discover(discover)) => discover::run(&discover, &config),
        #[cfg(feature = "mongodb")]
        Some(Command::Mongodb(mongodb)) => granary_agent_mongodb::run(mongodb),
        Some(Command::Scrape(scrape)) => granary_agent_scrape::run(&scrape),
        Some(Command::WriteManual { folder }) => granary_manual::write(Args::command(), &folder)
            .with_context(|| format!("write into {}", folder.display())),
        Some(Command::Test) => collect(config, |agent| agent.print = true),
        Some(Command::Run { rounds }) => {
            collect(config, |agent| agent.rounds = rounds.or(agent.rounds))
        }
        None => collect(config, |_| {}),
    }
}

/// Runs the collectors of the settings file.
fn collect(path: PathBuf, change: impl FnOnce(&mut AgentArgs)) -> anyhow::Result<()> {
    let settings = Settings::read(&path).map_err(anyhow::Error::msg)?;
    let mut agent = settings.agent.clone();
    change(&mut agent);
    let mut planner = FilePlanner { path, name: agent.agent_name(), last: None };
    Ok(granary_agent_kit::run_planned("agent", &agent, &mut planner)?)
}

/// The planner. It reads the settings file and remembers the settings of the running collectors.
struct FilePlanner {
    path: PathBuf,
    /// The agent's name.
    name: String,
    /// The settings in force.
    last: Option<Settings>,
}

impl Planner for FilePlanner {
    fn plan(&mut self, running: &[&str]) -> Result<Plan, String> {
        let settings = Settings::read(&self.path)?;
        if self.last.as_ref().is_some_and(|last| last.agent_table != settings.agent_table) {
            tracing::warn!("[agent] has changed; restart the agent to apply it");
        }
        let needed = settings.memory_needed();
        if let Some(limit) = granary_agent_kit::memory_limit().filter(|limit| *limit < needed) {
            let (needed, limit) = (needed >> 20, limit >> 20);
            tracing::warn!(
                needed,
                limit,
                "the memory limit (MiB) is below the maximum that the settings need: raise \
                 MemoryMax of the unit, or lower memory_max of [scrape] or [statsd]"
            );
        }
        let plan =
            Collectors { name: &self.name, last: self.last.as_ref(), running }.plan(&settings)?;
        self.last = Some(settings);
        Ok(plan)
    }
}
