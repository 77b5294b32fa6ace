//! One server: its connection, its state between rounds, and the outcome of a round.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use granary_agent_kit::{Readings, Stopwatch, WatchedHost};
use mongodb::options::{ClientOptions, ServerAddress};

use crate::{
    connection::{Connection, Costs, Fault},
    databases::{DATABASES_MAX, Sweep},
    machine::Machine,
    polling::Polling,
    replication::Oplog,
    role::{Role, ServerRole},
    settings::{Settings, TargetSettings},
    sharding::Reporter,
    slow_values::SlowValues,
    status::ServerState,
    topology::{SharedTopology, Topology, View},
};

/// A server, with its state between rounds.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) options: ClientOptions,
    /// Host and port.
    pub(crate) address: String,
    /// The servers of the cluster, if they are discovered.
    pub(crate) topology: Option<SharedTopology>,
    /// The router that reports the state of the cluster, among those of the same URI.
    pub(crate) reporter: Arc<Reporter>,
    /// The shard of the set, as a router reported it.
    shard: Option<String>,
    /// True when the server does not answer and its set cannot reach it either.
    set_saw_failure: bool,
    /// The value of the tag `host`.
    pub(crate) host: String,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) limits: Limits,
    pub(crate) connection: Option<Connection>,
    pub(crate) costs: Costs,
    pub(crate) server_role: ServerRole,
    pub(crate) polling: Polling,
    pub(crate) server_state: ServerState,
    pub(crate) machine: Machine,
    pub(crate) machine_next_ms: i64,
    pub(crate) oplog: Option<Oplog>,
    pub(crate) oplog_next_ms: i64,
    pub(crate) sweep: Sweep,
    pub(crate) slow: SlowValues,
    /// The readings of the current round; `None` before the server answered.
    pub(crate) readings: Option<Readings>,
    /// The readings about the replica set.
    pub(crate) set_readings: Option<Readings>,
    pub(crate) lag_seconds: Option<f64>,
}

/// The time limit of a round, the interval of sweeps, and the number of collections with series.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    /// The interval of rounds.
    pub(crate) interval_ms: i64,
    pub(crate) databases_every_ms: Option<i64>,
    pub(crate) collections_max: usize,
}

impl Limits {
    /// Returns the limits of these settings, with rounds at this interval.
    pub(crate) fn of(settings: &Settings, interval: Duration) -> Self {
        let Settings { timeout, databases_every, collections_max, .. } = *settings;
        let databases_every = Some(databases_every).filter(|interval| !interval.is_zero());
        let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self {
            timeout,
            interval_ms: millis(interval),
            databases_every_ms: databases_every.map(millis),
            collections_max,
        }
    }
}

impl Target {
    pub(crate) fn new(
        address: &ServerAddress,
        options: ClientOptions,
        settings: &TargetSettings,
        limits: Limits,
    ) -> Self {
        let name_of_single_host = settings.host.as_ref().filter(|_| !settings.uri.contains(','));
        Self {
            options,
            address: address.to_string(),
            topology: None,
            reporter: Arc::default(),
            shard: None,
            set_saw_failure: false,
            host: name_of_single_host.cloned().unwrap_or_else(|| address.to_string()),
            tags: settings.tags.clone().into_iter().collect(),
            limits,
            connection: None,
            costs: Costs::default(),
            server_role: ServerRole::default(),
            polling: Polling::default(),
            server_state: ServerState::default(),
            machine: Machine::default(),
            machine_next_ms: 0,
            oplog: None,
            oplog_next_ms: 0,
            sweep: Sweep::default(),
            slow: SlowValues::default(),
            readings: None,
            set_readings: None,
            lag_seconds: None,
        }
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the name of a server in messages.
    pub(crate) fn object_of(host: &str) -> String {
        format!("mongodb {host}")
    }

    /// Returns the server as the other members of its set see it, and updates its shard.
    fn view_of_set(&mut self, now_ms: i64) -> Option<View> {
        let topology = self.topology.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let set = self.server_role.set.as_deref()?;
        self.shard = topology.shard_of(set).map(str::to_owned);
        topology.view_of(set, &self.address, now_ms)
    }

    /// Updates the known servers of the cluster.
    pub(crate) fn update_topology(&self, update: impl FnOnce(&mut Topology)) {
        if let Some(topology) = &self.topology {
            update(&mut topology.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Samples the server if it is due, and returns the readings up to the time limit.
    pub(crate) async fn sample(&mut self, now_ms: i64, started_ms: i64) -> Readings {
        (self.readings, self.set_readings, self.lag_seconds) = (None, None, None);
        let watch = Stopwatch::start();
        let mut problem = None;
        let view = self.view_of_set(now_ms);
        // The set reached the server again before the agent's next attempt.
        let has_returned = self.set_saw_failure && view.is_some_and(|view| view.is_healthy);
        let is_due = has_returned || self.polling.is_due(now_ms);
        if is_due {
            let timeout = self.limits.timeout;
            let outcome =
                match tokio::time::timeout(timeout, self.query_server(now_ms, watch)).await {
                    Ok(outcome) => outcome,
                    Err(_) => Err(Fault::Unreachable(format!("no answer within {timeout:?}"))),
                };
            problem = outcome.err().map(|fault| fault.to_string());
            self.costs = self.connection.as_ref().map_or(self.costs, |connection| connection.costs);
            if self.readings.is_some() {
                self.polling.note_response();
            } else {
                self.polling.note_failure(now_ms, self.server_role.role == Role::Mongos);
                // Otherwise the driver would continue to search for the server.
                self.connection = None;
            }
        }
        if self.server_role.has_data() && self.limits.databases_every_ms.is_some() {
            self.add_databases();
        }
        self.add_slow_values();
        // These readings have no tag of the set, which is unknown before the first response.
        let mut readings = Readings::new(self.host_tags());
        if let Some(problem) = problem {
            readings.problem(Self::object_of(&self.host), problem + &describe(view));
        } else if !self.polling.is_up() {
            // The server is not sampled in this round, and still counts as down.
            let problem = format!("does not answer{}", describe(view));
            readings.problem(Self::object_of(&self.host), problem);
        }
        self.set_saw_failure = !self.polling.is_up() && view.is_some_and(|view| !view.is_healthy);
        if let Some(view) = view.filter(|_| !self.polling.is_up()) {
            let mut of_set = Readings::new(self.set_tags());
            of_set.gauge("mongodb_state", "", &[], view.state);
            readings.append(of_set);
        }
        let is_up = f64::from(u8::from(self.polling.is_up()));
        readings.gauge("mongodb_up", "", &[], is_up);
        if is_due {
            self.add_cost(watch, started_ms, &mut readings);
        }
        self.add_watched_host(&mut readings);
        readings.append(self.readings.take().unwrap_or_default());
        readings.append(self.set_readings.take().unwrap_or_default());
        readings
    }

    /// Adds the duration of the round, and the number, failures and total time of commands.
    fn add_cost(&self, watch: Stopwatch, started_ms: i64, readings: &mut Readings) {
        let start = Some(started_ms);
        let Costs { commands, failures, waiting_time } = self.costs;
        let duration_s = watch.elapsed().as_secs_f64();
        readings.gauge("mongodb_collect_duration", "seconds", &[], duration_s);
        readings.counter("mongodb_collect_commands", "commands", &[], commands as f64, start);
        readings.counter("mongodb_collect_failures", "commands", &[], failures as f64, start);
        readings.counter(
            "mongodb_collect_waited",
            "seconds",
            &[],
            waiting_time.as_secs_f64(),
            start,
        );
    }

    fn add_watched_host(&self, readings: &mut Readings) {
        let is_absent = !self.polling.is_up();
        let mut tags = self.tags.clone();
        if !is_absent {
            tags.push(("role".to_owned(), self.server_role.name().to_owned()));
        }
        tags.extend(self.server_role.set.clone().map(|set| ("set".to_owned(), set)));
        tags.extend(self.shard.clone().map(|shard| ("shard".to_owned(), shard)));
        self.add_tag(&mut tags, "machine", self.machine.name());
        let started_ms = self.server_state.started_ms();
        let (host, is_ending) = (self.host.clone(), false);
        readings.watched(WatchedHost { host, started_ms, tags, is_absent, is_ending });
    }

    /// Adds the values of databases from this round or an earlier round.
    fn add_databases(&mut self) {
        let Some(readings) = &mut self.readings else { return };
        let unlisted = self.sweep.push_values(readings);
        if unlisted > 0 {
            let cause = format!(
                "{unlisted} databases beyond {DATABASES_MAX} have no series of their own; totals \
                 count them"
            );
            readings.problem(format!("mongodb {} databases", self.host), cause);
        }
    }

    /// Returns the server's tags without its replica set.
    fn host_tags(&self) -> Vec<(String, String)> {
        let mut tags = self.tags.clone();
        tags.push(("host".to_owned(), self.host.clone()));
        tags
    }

    /// Returns the server's tags with its replica set, so that the members of a set can be grouped.
    /// The role is not part of them: a counter must continue after an election.
    pub(crate) fn set_tags(&self) -> Vec<(String, String)> {
        let mut tags = self.host_tags();
        self.add_tag(&mut tags, "set", self.server_role.set.as_deref());
        self.add_tag(&mut tags, "shard", self.shard.as_deref());
        tags
    }

    /// Adds a tag unless the settings contain one with this name.
    fn add_tag(&self, tags: &mut Vec<(String, String)>, name: &str, value: Option<&str>) {
        if let Some(value) = value.filter(|_| !self.tags.iter().any(|(known, _)| known == name)) {
            tags.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Returns the set and the oplog window of a primary that answered.
    pub(crate) fn window_of_primary(&self) -> Option<(&str, f64)> {
        let is_primary = self.server_role.role == Role::Primary && self.polling.is_up();
        let set = self.server_role.set.as_deref().filter(|_| is_primary)?;
        Some((set, self.oplog?.window_seconds))
    }

    /// Returns the headroom of a secondary: the time until the oplog no longer contains the
    /// operations that the secondary needs. The headroom is the oplog window of the primary, or
    /// else of the secondary, minus the lag of the secondary.
    pub(crate) fn headroom_seconds(&self, window_of: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        let lag = self.lag_seconds?;
        let of_primary = self.server_role.set.as_deref().and_then(window_of);
        let window = of_primary.or(self.oplog.map(|oplog| oplog.window_seconds))?;
        Some(window - lag)
    }
}

/// Returns the end of a message about a server that does not answer: whether its set reaches it.
fn describe(view: Option<View>) -> String {
    match view {
        Some(View { is_healthy: true, .. }) => {
            "; its set reaches it: check the network between this agent and the server".to_owned()
        }
        Some(View { is_healthy: false, state, .. }) => {
            format!("; its set cannot reach it either (state {state})")
        }
        None => String::new(),
    }
}
