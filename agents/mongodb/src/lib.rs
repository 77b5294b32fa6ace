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
    target::{Limits, Target},
    topology::{SharedTopology, Topology},
};

/// The servers of an agent, each sampled independently: a hanging server does not delay the others.
#[derive(Debug)]
pub struct MongoDb {
    sources: SideBySide,
    factory: ServerFactory,
    discoveries: Vec<Discovery>,
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
        Self::with_deadline(settings, interval, ROUND_DEADLINE)
    }

    /// Creates a source whose rounds wait up to `deadline` for responses.
    fn with_deadline(
        settings: &Settings,
        interval: Duration,
        deadline: Duration,
    ) -> Result<Self, SettingsError> {
        settings.check()?;
        let thread_error =
            |cause: std::io::Error| SettingsError(format!("cannot start a thread: {cause}"));
        // One thread for the driver's background tasks.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("mongodb")
            .enable_all()
            .build()
            .map_err(thread_error)?;
        let (runtime, windows) = (Arc::new(runtime), Arc::default());
        let factory =
            ServerFactory { runtime, windows, limits: Limits::of(settings, interval), interval };
        let (mut hosts, mut discoveries) = (BTreeSet::new(), Vec::new());
        let mut sources: Vec<(Duration, Box<dyn Source + Send>)> = Vec::new();
        let targets = targets_with_hosts(&settings.targets, &Resolver::of_this_machine())?;
        for target_settings in &targets {
            let options =
                factory.runtime.block_on(connection_options(target_settings, settings.timeout))?;
            let topology = target_settings.discover.then(|| topology_of(&options));
            let reporter: Arc<Reporter> = Arc::default();
            if let (Some(topology), Some((_, first))) = (&topology, options.first()) {
                let hosts = hosts_of(&target_settings.uri);
                check_credentials(first)
                    .map_err(|cause| SettingsError(format!("target {hosts}: {cause}")))?;
                let (settings, topology) = (target_settings.clone(), Arc::clone(topology));
                let seeds = Seeds::new(options.iter().map(|(address, _)| address));
                let shared = (topology, Arc::clone(&reporter));
                discoveries.push(Discovery::new(settings, first.clone(), shared, seeds));
            }
            for (address, options) in options {
                let mut target = Target::new(&address, options, target_settings, factory.limits);
                target.topology.clone_from(&topology);
                target.reporter = Arc::clone(&reporter);
                let host = target.host().to_owned();
                if !hosts.insert(host.clone()) {
                    return Err(SettingsError(format!(
                        "target {host}: two targets have this name"
                    )));
                }
                sources.push((interval, Box::new(factory.server(target))));
            }
        }
        let sources = SideBySide::with_intervals("mongodb", deadline, sources);
        let sources = sources.map_err(thread_error)?;
        Ok(Self { sources, factory, discoveries, hosts })
    }

    /// Starts and ends the sampling of discovered servers.
    fn follow(&mut self, now_ms: i64, readings: &mut Readings) {
        let Self { sources, factory, discoveries, hosts } = self;
        for discovery in discoveries {
            discovery.follow(now_ms, factory, hosts, sources, readings);
        }
    }
}

/// Returns the targets with the hosts of their DNS records.
fn targets_with_hosts(
    targets: &[TargetSettings],
    resolver: &Resolver,
) -> Result<Vec<TargetSettings>, SettingsError> {
    let with_hosts = |target: &TargetSettings| {
        let uri = srv::resolved(&target.uri, resolver)
            .map_err(|cause| SettingsError(format!("target {}: {cause}", hosts_of(&target.uri))))?;
        let uri = uri.unwrap_or_else(|| target.uri.clone());
        Ok(TargetSettings { uri, ..target.clone() })
    };
    targets.iter().map(with_hosts).collect()
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
        self.follow(now_ms, readings);
        self.sources.sample(now_ms, readings)
    }

    fn sample_alone(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
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
