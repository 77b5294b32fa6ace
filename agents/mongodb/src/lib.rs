//! Samples MongoDB servers of all roles, many from one agent, concurrently.
//!
//! `status` and `replication` convert a server's documents to readings by pure functions. `target`
//! is a server with its limits, and `queries` contains the queries of a round. METRICS.md lists
//! the metrics.

mod collections;
mod connection;
mod databases;
mod field;
mod operations;
mod polling;
mod queries;
mod replication;
#[cfg(test)]
mod responder;
mod role;
mod settings;
mod sharding;
mod slow_queries;
mod status;
mod target;
#[cfg(test)]
mod test_responses;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use granary_agent_kit::{ROUND_DEADLINE, Readings, SideBySide, Source, SourceError};
use tokio::runtime::Runtime;

pub use self::settings::{Settings, SettingsError, TargetSettings, parse_span};
use self::{
    connection::connection_options,
    target::{Limits, Target},
};

/// The servers of an agent, each sampled independently: a hanging server does not delay the others.
#[derive(Debug)]
pub struct MongoDb(SideBySide);

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
        let runtime = Arc::new(runtime);
        let databases_every = Some(settings.databases_every).filter(|interval| !interval.is_zero());
        let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        let databases_every_ms = databases_every.map(millis);
        let Settings { timeout, collections_max, .. } = *settings;
        let limits = Limits { timeout, databases_every_ms, collections_max };
        let windows = Arc::new(OplogWindows::default());
        let mut hosts = Vec::new();
        let mut sources: Vec<(Duration, Box<dyn Source + Send>)> = Vec::new();
        for target in &settings.targets {
            let options = runtime.block_on(connection_options(target, settings.timeout))?;
            for (address, options) in options {
                let target = Target::new(&address, options, target, limits);
                let host = target.host().to_owned();
                if hosts.contains(&host) {
                    return Err(SettingsError(format!(
                        "target {host}: two targets have this name"
                    )));
                }
                hosts.push(host);
                let (runtime, windows) = (Arc::clone(&runtime), Arc::clone(&windows));
                let server = Server { runtime, target, windows, started_ms: None };
                sources.push((interval, Box::new(server)));
            }
        }
        SideBySide::with_intervals("mongodb", deadline, sources).map(Self).map_err(thread_error)
    }
}

impl Source for MongoDb {
    fn name(&self) -> &'static str {
        "mongodb"
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        self.0.sample(now_ms, readings)
    }

    fn sample_alone(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        self.0.sample_alone(now_ms, readings)
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
        format!("mongodb {}", self.target.host())
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
