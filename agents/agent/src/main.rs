//! The agent program: several collectors, configured by one file, with one spool and one delivery.
//!
//! `settings` reads the file, `collectors` turns it into a plan. Must never know: what a collector
//! measures, and how samples are delivered.

mod collectors;
mod discover;
mod enroll;
mod settings;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use granary_agent_kit::{Plan, Planner};

use crate::{
    collectors::Collectors, discover::DiscoverArgs, enroll::EnrollArgs, settings::Settings,
};

/// Collects metrics of this host, Prometheus exporters, StatsD clients, MongoDB, Redis, nginx,
/// PostgreSQL and MySQL servers, scripts and Nagios plugins, configured by one file, and delivers
/// them to granary.
#[derive(Debug, Parser)]
#[command(name = "granary-agent", version)]
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
    /// Print settings for the services that listen on this host: databases, web servers, message
    /// brokers, proxies, and programs that serve /metrics
    Discover(DiscoverArgs),
}

fn main() -> ExitCode {
    granary_agent_kit::exit_code("granary-agent", start(Args::parse()))
}

fn start(args: Args) -> anyhow::Result<()> {
    if let Some(Command::Enroll(enroll)) = args.command {
        return enroll::run(enroll, &args.config);
    }
    if let Some(Command::Discover(discover)) = args.command {
        return discover::run(&discover, &args.config);
    }
    let settings = Settings::read(&args.config).map_err(anyhow::Error::msg)?;
    let mut agent = settings.agent.clone();
    match args.command {
        Some(Command::Test) => agent.print = true,
        Some(Command::Run { rounds }) => agent.rounds = rounds.or(agent.rounds),
        Some(Command::Enroll(_) | Command::Discover(_)) | None => {}
    }
    let mut planner = FilePlanner { path: args.config, name: agent.agent_name(), last: None };
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
