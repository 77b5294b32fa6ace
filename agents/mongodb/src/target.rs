//! One server: its connection, its state between rounds, and the outcome of a round.

use std::time::Duration;

use granary_agent_kit::{Readings, Stopwatch, WatchedHost};
use mongodb::options::{ClientOptions, ServerAddress};

use crate::{
    connection::{Connection, Costs, Fault},
    databases::{DATABASES_MAX, Sweep},
    polling::Polling,
    replication::Oplog,
    role::{Role, ServerRole},
    settings::TargetSettings,
    slow_queries::SlowQueries,
    status::ServerState,
};

/// A server, with its state between rounds.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) options: ClientOptions,
    /// The value of the tag `host`.
    pub(crate) host: String,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) limits: Limits,
    pub(crate) connection: Option<Connection>,
    pub(crate) costs: Costs,
    pub(crate) server_role: ServerRole,
    pub(crate) polling: Polling,
    pub(crate) server_state: ServerState,
    pub(crate) cores: Option<f64>,
    pub(crate) machine_next_ms: i64,
    pub(crate) oplog: Option<Oplog>,
    pub(crate) oplog_next_ms: i64,
    pub(crate) sweep: Sweep,
    pub(crate) slow_queries: SlowQueries,
    /// The readings of the current round; `None` before the server answered.
    pub(crate) readings: Option<Readings>,
    /// The readings about the replica set, which have no role.
    pub(crate) set_readings: Option<Readings>,
    pub(crate) lag_seconds: Option<f64>,
}

/// The time limit of a round, the interval of sweeps, and the number of collections with series.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    pub(crate) databases_every_ms: Option<i64>,
    pub(crate) collections_max: usize,
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
            host: name_of_single_host.cloned().unwrap_or_else(|| address.to_string()),
            tags: settings.tags.clone().into_iter().collect(),
            limits,
            connection: None,
            costs: Costs::default(),
            server_role: ServerRole::default(),
            polling: Polling::default(),
            server_state: ServerState::default(),
            cores: None,
            machine_next_ms: 0,
            oplog: None,
            oplog_next_ms: 0,
            sweep: Sweep::default(),
            slow_queries: SlowQueries::default(),
            readings: None,
            set_readings: None,
            lag_seconds: None,
        }
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Samples the server if it is due, and returns the readings up to the time limit.
    pub(crate) async fn sample(&mut self, now_ms: i64, started_ms: i64) -> Readings {
        (self.readings, self.set_readings, self.lag_seconds) = (None, None, None);
        let watch = Stopwatch::start();
        let mut problem = None;
        let is_due = self.polling.is_due(now_ms);
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
        // The set's tag remains on these series when the server does not answer; the role does not.
        let mut readings = Readings::new(self.set_tags());
        if let Some(problem) = problem {
            readings.problem(format!("mongodb {}", self.host), problem);
        } else if !self.polling.is_up() {
            // The server is not sampled in this round, and still counts as down.
            readings.problem(format!("mongodb {}", self.host), "does not answer");
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
        let started_ms = self.server_state.started_ms();
        readings.watched(WatchedHost { host: self.host.clone(), started_ms, tags, is_absent });
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

    /// Returns the server's tags with its replica set, so that the members of a set can be grouped.
    pub(crate) fn set_tags(&self) -> Vec<(String, String)> {
        let mut tags = self.tags.clone();
        tags.push(("host".to_owned(), self.host.clone()));
        self.add_tag(&mut tags, "set", self.server_role.set.as_deref());
        tags
    }

    /// Returns the tags of series that depend on the role of the server.
    pub(crate) fn role_tags(&self) -> Vec<(String, String)> {
        let mut tags = self.set_tags();
        self.add_tag(&mut tags, "role", Some(self.server_role.name()));
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
