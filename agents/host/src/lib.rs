//! Samples this host from /proc for granary. No privileges are needed.
//!
//! METRICS.md lists the metrics. Most sources of metrics have a file of their own.

mod cgroups;
mod clock;
mod connections;
mod cpu;
mod disk;
mod disk_intervals;
mod files;
mod filesystem;
mod host;
mod kernel;
mod load;
mod memory;
mod named_processes;
mod network;
mod nfs;
mod pressure;
mod processes;
mod raid;
mod smart;
mod stat;
mod systemd;
mod tcp;
mod temperature;
mod top_processes;
mod uptime;
mod zfs;

use std::{io, sync::Arc, time::Duration};

use granary_agent_kit::{SideBySide, Source, SourceError};

use crate::host::Host;

/// The sources that may block or take long, with their intervals in milliseconds. The time of every
/// round is a multiple of one millisecond.
const SLOW: [(&str, u64); 7] = [
    ("filesystem", 1),
    ("clock", 1),
    ("temperature", 1),
    ("cgroups", 1),
    ("connections", connections::INTERVAL_MS),
    ("systemd", systemd::INTERVAL_MS),
    ("smart", 1),
];
/// The time that a round waits for the sources that may block.
const DEADLINE: Duration = Duration::from_secs(1);

/// The processes whose usage is sampled.
#[derive(Debug, Clone, Copy)]
pub struct ProcessChoice<'a> {
    /// Names whose processes are summed up in every round.
    pub names: &'a [String],
    /// True if the processes that use the most are sampled too.
    pub has_top: bool,
}

/// Returns the sources of this machine. `name` is the value of the tag `host`.
///
/// # Errors
/// /proc is unreadable, or a thread cannot be started.
pub fn sources(
    name: String,
    processes: ProcessChoice<'_>,
) -> Result<Vec<Box<dyn Source>>, SourceError> {
    let host = Arc::new(Host::of_this_machine(name)?);
    Ok(with_threads(all_sources(&host, processes))?)
}

/// Moves the slow sources to their own threads: those that wait for a medium, a chip or another
/// process. A round skips such a source when it takes too long. The other sources only read memory
/// and are sampled directly.
fn with_threads(sources: Vec<Box<dyn Source + Send>>) -> io::Result<Vec<Box<dyn Source>>> {
    let (mut slow, mut quick) = (Vec::new(), Vec::<Box<dyn Source>>::new());
    for source in sources {
        match SLOW.iter().find(|(name, _)| *name == source.name()) {
            Some((_, interval_ms)) => slow.push((Duration::from_millis(*interval_ms), source)),
            None => quick.push(source),
        }
    }
    let slow: Box<dyn Source> = Box::new(SideBySide::with_intervals("slow", DEADLINE, slow)?);
    Ok(std::iter::once(slow).chain(quick).collect())
}

/// Returns all sources, with the requested processes.
fn all_sources(host: &Arc<Host>, processes: ProcessChoice<'_>) -> Vec<Box<dyn Source + Send>> {
    let mut sources = standard_sources(host);
    if processes.has_top {
        sources.push(Box::new(top_processes::TopProcesses::new(Arc::clone(host))));
    }
    if !processes.names.is_empty() {
        sources.push(Box::new(named_processes::NamedProcesses::new(
            Arc::clone(host),
            processes.names.to_vec(),
        )));
    }
    sources
}

/// Returns the sources that every host has, in the order of METRICS.md.
fn standard_sources(host: &Arc<Host>) -> Vec<Box<dyn Source + Send>> {
    vec![
        Box::new(cpu::Cpu::new(Arc::clone(host))),
        Box::new(load::Load(Arc::clone(host))),
        Box::new(memory::Memory(Arc::clone(host))),
        Box::new(disk::Disk::new(Arc::clone(host))),
        Box::new(filesystem::FileSystem(Arc::clone(host))),
        Box::new(network::Network(Arc::clone(host))),
        Box::new(processes::Processes(Arc::clone(host))),
        Box::new(files::Files(Arc::clone(host))),
        Box::new(tcp::Tcp(Arc::clone(host))),
        Box::new(connections::Connections(Arc::clone(host))),
        Box::new(uptime::Uptime(Arc::clone(host))),
        Box::new(pressure::Pressure::new(Arc::clone(host))),
        Box::new(kernel::Kernel(Arc::clone(host))),
        Box::new(clock::Clock::new(Arc::clone(host))),
        Box::new(temperature::Temperature::new(Arc::clone(host))),
        Box::new(cgroups::Cgroups::new(Arc::clone(host))),
        Box::new(systemd::Systemd(Arc::clone(host))),
        Box::new(raid::Raid(Arc::clone(host))),
        Box::new(zfs::Zfs(Arc::clone(host))),
        Box::new(nfs::Nfs(Arc::clone(host))),
        Box::new(smart::Smart::new(Arc::clone(host))),
    ]
}

#[cfg(test)]
mod tests;
