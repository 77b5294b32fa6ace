//! The services that listen on this host, found by short requests to each listening port.
//!
//! Must never know: the settings that follow from a service.

mod listening;
mod probe;

use std::{net::SocketAddr, thread};

pub use self::probe::Program;
use self::{listening::listening, probe::recognize};

/// The maximum number of ports that are tried.
const PORTS_MAX: usize = 256;
/// The number of ports that are tried at once.
const CONCURRENT: usize = 8;

/// A service of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundService {
    /// The address at which this host reaches it.
    pub address: SocketAddr,
    /// The program.
    pub program: Program,
}

/// Returns the services that listen on this host, by port, and the reasons why some may be missing.
/// It takes up to a second for each eight ports.
pub fn discover() -> (Vec<FoundService>, Vec<String>) {
    let (mut addresses, mut problems) = listening();
    if addresses.len() > PORTS_MAX {
        let beyond = addresses.len() - PORTS_MAX;
        problems.push(format!("{beyond} listening ports beyond {PORTS_MAX} are not tried"));
        addresses.truncate(PORTS_MAX);
    }
    let mut found = Vec::new();
    for group in addresses.chunks(CONCURRENT) {
        let programs = thread::scope(|scope| {
            let probes: Vec<_> =
                group.iter().map(|address| scope.spawn(|| recognize(*address))).collect();
            probes.into_iter().map(|probe| probe.join().ok().flatten()).collect::<Vec<_>>()
        });
        let services = group.iter().zip(programs).filter_map(|(address, program)| {
            Some(FoundService { address: *address, program: program? })
        });
        found.extend(services);
    }
    (found, problems)
}
