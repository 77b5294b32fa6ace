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

use std::sync::Arc;

use granary_agent_kit::{Source, SourceError};

use crate::host::Host;

/// What is sampled of this machine; `name` is the value of the tag `host`.
///
/// # Errors
/// When /proc cannot be read.
pub fn sources(name: String) -> Result<Vec<Box<dyn Source>>, SourceError> {
    Ok(every_group(&Arc::new(Host::of_this_machine(name)?)))
}

/// Every group, in the order of METRICS.md.
fn every_group(host: &Arc<Host>) -> Vec<Box<dyn Source>> {
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
