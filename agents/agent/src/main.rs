//! The program: several collectors by one file, with one spool and one delivery.
//!
//! `settings` reads the file, `collectors` makes a plan of it. Must never know: what a collector
//! measures, and how it is delivered.

mod collectors;
mod settings;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use granary_agent_kit::{Plan, Planner};

use crate::{collectors::Collectors, settings::Settings};

/// Collects from this host, Prometheus exporters, StatsD clients, MongoDB, Redis, nginx, PostgreSQL and
/// MySQL servers, scripts and Nagios plugins, as one file says, and delivers it to granary.
#[derive(Debug, Parser)]
#[command(name = "granary-agent", version)]
struct Args {
    /// The settings; SIGHUP reads them again
    #[arg(long, value_name = "FILE", default_value = "/etc/granary/agent.toml", global = true)]
    config: PathBuf,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Collect and deliver until SIGTERM or SIGINT; this is done without a command, too
    Run {
        /// Stop after this many rounds and deliver them
        #[arg(long, value_name = "N")]
        rounds: Option<u64>,
    },
    /// Collect one round, print what each collector and target gives, ask whether the daemon is there,
    /// send nothing
    Test,
}

fn main() -> ExitCode {
    granary_agent_kit::exit_code("granary-agent", start(Args::parse()))
}

fn start(args: Args) -> anyhow::Result<()> {
    let settings = Settings::read(&args.config).map_err(anyhow::Error::msg)?;
    let mut agent = settings.agent.clone();
    match args.command {
        Some(Command::Test) => agent.print = true,
        Some(Command::Run { rounds }) => agent.rounds = rounds.or(agent.rounds),
        None => {}
    }
    let mut planner = FilePlanner { path: args.config, name: agent.agent_name(), last: None };
    Ok(granary_agent_kit::run_planned("agent", &agent, &mut planner)?)
}

/// Reads the file, and knows what is running.
struct FilePlanner {
    path: PathBuf,
    /// The agent's name.
    name: String,
    /// The settings that are in force.
    last: Option<Settings>,
}

impl Planner for FilePlanner {
    fn plan(&mut self, running: &[&str]) -> Result<Plan, String> {
        let settings = Settings::read(&self.path)?;
        if self.last.as_ref().is_some_and(|last| last.agent_table != settings.agent_table) {
            tracing::warn!("[agent] has changed; restart the agent for that");
        }
        let needed = settings.memory_needed();
        if let Some(limit) = granary_agent_kit::memory_limit().filter(|limit| *limit < needed) {
            let (needed, limit) = (needed >> 20, limit >> 20);
            tracing::warn!(
                needed,
                limit,
                "the system leaves less memory (MiB) than the settings may take: raise MemoryMax of \
                 the unit, or lower memory_max of [scrape] or [statsd]"
            );
        }
        let plan =
            Collectors { name: &self.name, last: self.last.as_ref(), running }.plan(&settings)?;
        self.last = Some(settings);
        Ok(plan)
    }
}
