//! Samples MongoDB servers of all roles, many from one agent, concurrently.
//!
//! `status` and `replication` convert a server's documents to readings by pure functions. `target`
//! is a server with its limits, and `queries` contains the queries of a round. METRICS.md lists
//! the metrics.

mod collections;
mod command;
mod connection;
mod databases;
mod discovery;
mod field;
mod machine;
mod operations;
mod polling;
mod profile;
mod profile_queries;
mod queries;
mod replication;
#[cfg(test)]
mod responder;
mod role;
mod settings;
mod sharding;
mod slow_queries;
mod slow_values;
mod srv;
mod srv_lookup;
mod status;
mod target;
#[cfg(test)]
mod test_responses;
mod topology;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use granary_agent_kit::{ROUND_DEADLINE, Readings, SideBySide, Source, SourceError, hosts_of};
use granary_dns::Resolver;
use mongodb::options::{ClientOptions, ServerAddress};
use tokio::runtime::Runtime;

pub use self::command::{MongoDbArgs, run};
pub use self::settings::{Settings, SettingsError, TargetSettings, parse_span};
use self::{
    connection::connection_options,
    discovery::{Discovery, Seeds, check_credentials},
    sharding::Reporter,
    srv::SrvUri,
    srv_lookup::Unresolved,
    target::{Limits, Target},
    topology::{SharedTopology, Topology},
};

/// The servers of an agent, each sampled independently: a hanging server does not delay the others.
#[derive(Debug)]
pub struct MongoDb {
    sources: SideBySide,
    factory: ServerFactory,
    discoveries: Vec<Discovery>,
    /// The targets whose DNS records were not read yet.
    unresolved: Vec<Unresolved>,
    timeout: Duration,
    /// The names of all servers.
    hosts: BTreeSet<String>,
}

/// The parts that all servers share.
#[derive(Debug)]
struct ServerFactory {
    runtime: Arc<Runtime>,
    windows: Arc<OplogWindows>,
    limits: Limits,
    interval: Duration,
}

impl ServerFactory {
    fn server(&self, target: Target) -> Server {
        let (runtime, windows) = (Arc::clone(&self.runtime), Arc::clone(&self.windows));
        Server { runtime, target, windows, started_ms: None }
    }

    /// Removes the oplog window of a server that is no longer sampled.
    fn forget(&self, host: &str) {
        let mut windows = self.windows.0.lock().unwrap_or_else(PoisonError::into_inner);
        windows.retain(|(known, ..)| known != host);
    }
}

impl MongoDb {
    /// Creates a source for these servers. They are sampled in the rounds whose times are multiples
    /// of `interval`; the first round opens the connections.
    ///
    /// # Errors
    /// A target is invalid, two targets have the same name, or a thread cannot be started.
    pub fn new(settings: &Settings, interval: Duration) -> Result<Self, SettingsError> {
        Self::with_deadline(settings, interval, ROUND_DEADLINE, None)
    }

    /// Creates a source whose rounds wait up to `deadline` for responses. Without a resolver, the
    /// name servers of this machine are queried.
    fn with_deadline(
        settings: &Settings,
        interval: Duration,
        deadline: Duration,
        resolver: Option<&Resolver>,
    ) -> Result<Self, SettingsError> {
        settings.check()?;
        // One thread for the driver's background tasks.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("mongodb")
            .enable_all()
            .build()
            .map_err(|cause| thread_error(&cause))?;
        let (runtime, windows) = (Arc::new(runtime), Arc::default());
        let factory =
            ServerFactory { runtime, windows, limits: Limits::of(settings, interval), interval };
        let sources = SideBySide::with_intervals("mongodb", deadline, Vec::new());
        let sources = sources.map_err(|cause| thread_error(&cause))?;
        let (discoveries, unresolved, timeout) = (Vec::new(), Vec::new(), settings.timeout);
        let hosts = BTreeSet::new();
        let mut agent = Self { sources, factory, discoveries, unresolved, timeout, hosts };
        for target in &settings.targets {
            let srv = SrvUri::parse(&target.uri).map_err(|cause| {
                SettingsError(format!("target {}: {cause}", hosts_of(&target.uri)))
            })?;
            match srv {
                None => agent.add_target(target)?,
                Some(srv) => agent.look_up(target, srv, resolver.cloned())?,
            }
        }
        Ok(agent)
    }

    /// Starts the lookup of a target's servers in DNS records.
    fn look_up(
        &mut self,
        target: &TargetSettings,
        srv: SrvUri,
        resolver: Option<Resolver>,
    ) -> Result<(), SettingsError> {
        let (unresolved, lookup) = Unresolved::new(target.clone(), srv, resolver);
        if self.unresolved.iter().any(|other| other.object == unresolved.object) {
            return Err(SettingsError(format!("{}: two targets have this name", lookup.object())));
        }
        self.unresolved.push(unresolved);
        let added = self.sources.add(self.factory.interval, Box::new(lookup));
        added.map_err(|cause| thread_error(&cause))
    }

    /// Starts the servers of a target.
    fn add_target(&mut self, settings: &TargetSettings) -> Result<(), SettingsError> {
        let Self { sources, factory, hosts, .. } = self;
        let options = factory.runtime.block_on(connection_options(settings, self.timeout))?;
        let topology = settings.discover.then(|| topology_of(&options));
        let reporter: Arc<Reporter> = Arc::default();
        if let (Some(_), Some((_, first))) = (&topology, options.first()) {
            let hosts = hosts_of(&settings.uri);
            check_credentials(first)
                .map_err(|cause| SettingsError(format!("target {hosts}: {cause}")))?;
        }
        let mut targets = Vec::new();
        for (address, options) in &options {
            let mut target = Target::new(address, options.clone(), settings, factory.limits);
            target.topology.clone_from(&topology);
            target.reporter = Arc::clone(&reporter);
            let host = target.host();
            let is_duplicate = |other: &Target| other.host() == host;
            if hosts.contains(host) || targets.iter().any(is_duplicate) {
                return Err(SettingsError(format!("target {host}: two targets have this name")));
            }
            targets.push(target);
        }
        for target in targets {
            hosts.insert(target.host().to_owned());
            let added = sources.add(factory.interval, Box::new(factory.server(target)));
            added.map_err(|cause| thread_error(&cause))?;
        }
        if let (Some(topology), Some((_, first))) = (topology, options.first()) {
            let seeds = Seeds::new(options.iter().map(|(address, _)| address));
            let shared = (topology, reporter);
            self.discoveries.push(Discovery::new(settings.clone(), first.clone(), shared, seeds));
        }
        Ok(())
    }

    /// Starts the servers of the targets whose records were read since the last round.
    fn start_resolved(&mut self, now_ms: i64, readings: &mut Readings) {
        for unresolved in std::mem::take(&mut self.unresolved) {
            let Some(settings) = unresolved.resolved() else {
                self.unresolved.push(unresolved);
                continue;
            };
            match self.add_target(&settings) {
                Ok(()) => self.sources.remove(&unresolved.object, now_ms, readings),
                // The lookup is repeated, because the records can change.
                Err(cause) => {
                    readings.problem(unresolved.object.clone(), cause.to_string());
                    self.unresolved.push(unresolved);
                }
            }
        }
    }

    /// Starts and ends the sampling of discovered servers.
    fn follow(&mut self, now_ms: i64, readings: &mut Readings) {
        let Self { sources, factory, discoveries, hosts, .. } = self;
        for discovery in discoveries {
            discovery.follow(now_ms, factory, hosts, sources, readings);
        }
    }
}

fn thread_error(cause: &std::io::Error) -> SettingsError {
    SettingsError(format!("cannot start a thread: {cause}"))
}

fn topology_of(options: &[(ServerAddress, ClientOptions)]) -> SharedTopology {
    let addresses = options.iter().map(|(address, _)| address.to_string());
    Arc::new(Mutex::new(Topology::new(addresses)))
}

/// The number of rounds after which a single round contains the discovered servers: a router
/// reports sets, and their members report hidden members.
const DISCOVERY_ROUNDS: usize = 2;

impl Source for MongoDb {
    fn name(&self) -> &'static str {
        "mongodb"
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        self.start_resolved(now_ms, readings);
        self.follow(now_ms, readings);
        self.sources.sample(now_ms, readings)
    }

    fn sample_alone(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        if !self.unresolved.is_empty() {
            self.sources.sample_alone(now_ms, &mut Readings::default())?;
            self.start_resolved(now_ms, readings);
        }
        for _ in 0..DISCOVERY_ROUNDS {
            if !self.discoveries.is_empty() {
                self.sources.sample_alone(now_ms, &mut Readings::default())?;
                self.follow(now_ms, readings);
            }
        }
        self.sources.sample_alone(now_ms, readings)
    }
}

/// The oplog windows of primaries: host, set, seconds.
#[derive(Debug, Default)]
struct OplogWindows(Mutex<Vec<(String, String, f64)>>);

impl OplogWindows {
    /// Records the window of a primary. Returns a function that finds the window of a replica set.
    fn update(&self, target: &Target) -> impl Fn(&str) -> Option<f64> + use<> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(host, ..)| host != target.host());
        if let Some((set, seconds)) = target.window_of_primary() {
            all.push((target.host().to_owned(), set.to_owned(), seconds));
        }
        let all = all.clone();
        move |set| all.iter().find(|(_, known, _)| known == set).map(|(.., seconds)| *seconds)
    }
}

/// A server as a source.
#[derive(Debug)]
struct Server {
    runtime: Arc<Runtime>,
    target: Target,
    windows: Arc<OplogWindows>,
    /// The time of the first round, at which the agent's counters start.
    started_ms: Option<i64>,
}

impl Source for Server {
    fn name(&self) -> &'static str {
        "mongodb"
    }

    fn object(&self) -> String {
        Target::object_of(self.target.host())
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let started_ms = *self.started_ms.get_or_insert(now_ms);
        readings.append(self.runtime.block_on(self.target.sample(now_ms, started_ms)));
        let find_window = self.windows.update(&self.target);
        if let Some(seconds) = self.target.headroom_seconds(find_window) {
            let mut headroom = Readings::new(self.target.set_tags());
            headroom.gauge("mongodb_oplog_master_lag_time_diff", "seconds", &[], seconds);
            readings.append(headroom);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
