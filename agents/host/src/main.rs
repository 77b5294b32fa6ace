//! The program: it parses the arguments and runs the agent.

use std::process::ExitCode;

use clap::Parser;
use granary_agent_host::ProcessChoice;
use granary_agent_kit::AgentArgs;

/// The end of the help.
const ENVIRONMENT: &str = "\
Health of disks (SMART): install smartctl and run the agent as root.

Environment:
  GRANARY_KERNEL_CLOCK=yes  Ask the kernel for the clock's offset even under a filter of system
                            calls, which must permit adjtimex; not needed with chrony
  MIMALLOC_PURGE_DELAY=0    Return freed memory to the system at once";

/// Samples CPU, memory, disks, file systems, network and processes of this host for granary.
#[derive(Debug, Parser)]
#[command(name = "granary-agent-host", version, after_help = ENVIRONMENT)]
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
