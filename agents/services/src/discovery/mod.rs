//! The services that listen on this host, found by short requests to the ports of known programs
//! and to well-known ports, or to all ports on demand.
//!
//! Must never know: the settings that follow from a service.

mod listening;
mod probe;
mod suggestion;

use std::{net::SocketAddr, thread};

pub use self::probe::Program;
use self::{
    listening::{Listening, listening},
    probe::recognize,
    suggestion::{owners, suggestion_of},
};

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
/// Without `is_all`, only ports of known programs and well-known ports are tried. It takes up to
/// five seconds for each eight ports.
pub fn discover(is_all: bool) -> (Vec<FoundService>, Vec<String>) {
    let (sockets, mut problems) = listening();
    let owners = owners(&sockets.iter().map(|socket| socket.inode).collect());
    let suggestion = |socket: &Listening| {
        let owner = owners.get(&socket.inode).map(String::as_str);
        (socket.address, suggestion_of(socket.address.port(), owner))
    };
    let mut addresses: Vec<_> = sockets.iter().map(suggestion).collect();
    addresses.retain(|(_, suggestion)| is_all || suggestion.is_some());
    if addresses.len() > PORTS_MAX {
        let beyond = addresses.len() - PORTS_MAX;
        problems.push(format!("{beyond} listening ports beyond {PORTS_MAX} are not tried"));
        addresses.truncate(PORTS_MAX);
    }
    let mut found = Vec::new();
    for group in addresses.chunks(CONCURRENT) {
        let programs = thread::scope(|scope| {
            let probes: Vec<_> = group
                .iter()
                .map(|(address, hint)| scope.spawn(|| recognize(*address, *hint)))
                .collect();
            probes.into_iter().map(|probe| probe.join().ok().flatten()).collect::<Vec<_>>()
        });
        let services = group.iter().zip(programs).filter_map(|((address, _), program)| {
            Some(FoundService { address: *address, program: program? })
        });
        found.extend(services);
    }
    (found, problems)
}
