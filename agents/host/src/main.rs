//! Samples this host from /proc for granary. No privileges are needed.
//!
//! METRICS.md has the table of what is emitted; one file here is one group of it.

mod cpu;
mod disk;
mod files;
mod filesystem;
mod host;
mod load;
mod memory;
mod network;
mod processes;
mod stat;
mod tcp;
mod uptime;

use std::{process::ExitCode, sync::Arc};

use clap::Parser;
use granary_agent_kit::{AgentArgs, Source};

use crate::host::Host;

/// Samples CPU, memory, disks, file systems, network and processes of this host for granary.
#[derive(Debug, Parser)]
#[command(name = "granary-agent-host", version)]
struct Args {
    #[command(flatten)]
    agent: AgentArgs,
}

fn main() -> ExitCode {
    granary_agent_kit::exit_code("granary-agent-host", start(&Args::parse()))
}

fn start(args: &Args) -> anyhow::Result<()> {
    let host = Host::of_this_machine(args.agent.agent_name()).map_err(anyhow::Error::from_boxed)?;
    Ok(granary_agent_kit::run("host", &args.agent, sources(&Arc::new(host)))?)
}

/// Every group, in the order of METRICS.md.
fn sources(host: &Arc<Host>) -> Vec<Box<dyn Source>> {
    vec![
        Box::new(cpu::Cpu::new(Arc::clone(host))),
        Box::new(load::Load(Arc::clone(host))),
        Box::new(memory::Memory(Arc::clone(host))),
        Box::new(disk::Disk(Arc::clone(host))),
        Box::new(filesystem::FileSystem(Arc::clone(host))),
        Box::new(network::Network(Arc::clone(host))),
        Box::new(processes::Processes(Arc::clone(host))),
        Box::new(files::Files(Arc::clone(host))),
        Box::new(tcp::Tcp(Arc::clone(host))),
        Box::new(uptime::Uptime(Arc::clone(host))),
    ]
}

#[cfg(test)]
mod tests;
