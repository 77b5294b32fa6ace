//! The program: it parses the arguments and runs the agent.

use std::process::ExitCode;

use clap::Parser;
use granary_agent_host::ProcessChoice;
use granary_agent_kit::AgentArgs;

/// Samples CPU, memory, disks, file systems, network and processes of this host for granary.
#[derive(Debug, Parser)]
#[command(name = "granary-agent-host", version)]
struct Args {
    /// Name of processes whose CPU, memory and threads are summed up; can be repeated
    #[arg(long = "process", value_name = "NAME")]
    processes: Vec<String>,
    /// Do not sample the processes that use the most CPU, memory and I/O in each round
    #[arg(long)]
    no_top_processes: bool,
    #[command(flatten)]
    agent: AgentArgs,
}

fn main() -> ExitCode {
    granary_agent_kit::exit_code("granary-agent-host", start(&Args::parse()))
}

fn start(args: &Args) -> anyhow::Result<()> {
    let processes = ProcessChoice { names: &args.processes, has_top: !args.no_top_processes };
    let sources = granary_agent_host::sources(args.agent.agent_name(), processes);
    let sources = sources.map_err(anyhow::Error::from_boxed)?;
    Ok(granary_agent_kit::run("host", &args.agent, sources)?)
}
