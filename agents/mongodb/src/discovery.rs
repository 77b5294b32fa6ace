//! Discovery: the servers that members and routers report are sampled like those of the settings,
//! if their addresses are in the domain or network of the URI's hosts.

mod seeds;

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError},
};

use granary_agent_kit::{Readings, SideBySide, hosts_of};
use mongodb::options::{ClientOptions, ServerAddress};

use crate::{
    ServerFactory,
    connection::options_of_host,
    settings::TargetSettings,
    sharding::Reporter,
    target::Target,
    topology::{Found, SharedTopology},
};

pub(crate) use self::seeds::{Seeds, check_credentials};

/// The maximum number of servers, with those of the settings.
const SERVERS_MAX: usize = 900;
/// The maximum number of addresses in a message.
const LISTED_MAX: usize = 5;

/// The discovery of one target: its topology and the servers that it added.
#[derive(Debug)]
pub(crate) struct Discovery {
    settings: TargetSettings,
    /// The options of a connection to any server of the target.
    options: ClientOptions,
    topology: SharedTopology,
    reporter: Arc<Reporter>,
    seeds: Seeds,
    running: BTreeSet<String>,
}

impl Discovery {
    pub(crate) fn new(
        settings: TargetSettings,
        options: ClientOptions,
        (topology, reporter): (SharedTopology, Arc<Reporter>),
        seeds: Seeds,
    ) -> Self {
        Self { settings, options, topology, reporter, seeds, running: BTreeSet::new() }
    }

    /// Starts the servers that were found, and ends those that left the cluster. `hosts` are the
    /// names of all servers of the agent.
    pub(crate) fn follow(
        &mut self,
        now_ms: i64,
        factory: &ServerFactory,
        hosts: &mut BTreeSet<String>,
        sources: &mut SideBySide,
        readings: &mut Readings,
    ) {
        let found = self.topology.lock().unwrap_or_else(PoisonError::into_inner).found();
        let addresses: BTreeSet<&String> = found.iter().map(|found| &found.address).collect();
        let gone: Vec<String> =
            self.running.iter().filter(|running| !addresses.contains(running)).cloned().collect();
        for host in gone {
            self.running.remove(&host);
            hosts.remove(&host);
            factory.forget(&host);
            sources.remove(&Target::object_of(&host), now_ms, readings);
        }
        let (mut unsampled, mut foreign) = (0, Vec::new());
        for found in found {
            if hosts.contains(&found.address) || found.may_be_seed {
                continue;
            }
            let address = ServerAddress::parse(&found.address);
            if !address.is_ok_and(|address| self.seeds.include(&address)) {
                foreign.push(found.address);
                continue;
            }
            if hosts.len() >= SERVERS_MAX {
                unsampled += 1;
                continue;
            }
            if let Err(cause) = self.start(&found, factory, sources) {
                readings.problem(Target::object_of(&found.address), cause);
                continue;
            }
            hosts.insert(found.address.clone());
            self.running.insert(found.address);
        }
        if let Some(cause) = describe_foreign(&foreign) {
            readings
                .problem(format!("mongodb discovery from {}", hosts_of(&self.settings.uri)), cause);
        }
        if unsampled > 0 {
            let cause = format!("{unsampled} servers beyond {SERVERS_MAX} are not sampled");
            readings.problem("mongodb discovery", cause);
        }
    }

    fn start(
        &self,
        found: &Found,
        factory: &ServerFactory,
        sources: &mut SideBySide,
    ) -> Result<(), String> {
        let address = ServerAddress::parse(&found.address).map_err(|cause| cause.to_string())?;
        let mut options = options_of_host(&self.options, &address, factory.limits.timeout);
        if found.is_arbiter {
            // An arbiter stores no users, so it would refuse every password.
            options.credential = None;
        }
        let settings = TargetSettings { host: None, ..self.settings.clone() };
        let mut target = Target::new(&address, options, &settings, factory.limits);
        target.server_role.set.clone_from(&found.set);
        target.topology = Some(Arc::clone(&self.topology));
        target.reporter = Arc::clone(&self.reporter);
        let server = Box::new(factory.server(target));
        sources.add(factory.interval, server).map_err(|cause| cause.to_string())
    }
}

/// Returns the message about servers that were found but do not get the credentials.
fn describe_foreign(addresses: &[String]) -> Option<String> {
    let first: Vec<&String> = addresses.iter().take(LISTED_MAX).collect();
    let all = addresses.len();
    (all > 0).then(|| {
        format!(
            "{all} servers are not sampled, because they are outside of the domain and network of \
             the URI's hosts; name one of each domain or network in the URI: {first:.100?}"
        )
    })
}

#[cfg(test)]
mod tests;
