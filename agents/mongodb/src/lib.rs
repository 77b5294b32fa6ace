//! Samples MongoDB servers of every role, many from one agent, side by side.
//!
//! `status` and `replication` are pure functions from a server's documents to readings;
//! `target` is one server, within its bounds, `questions` what it is asked. METRICS.md has the table of
//! what is emitted.

mod connection;
mod databases;
mod field;
mod polling;
mod questions;
mod replication;
#[cfg(test)]
mod responder;
mod role;
mod settings;
#[cfg(test)]
mod shapes;
mod status;
mod target;

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use granary_agent_kit::{Readings, Source, SourceError};
use tokio::runtime::Runtime;

pub use self::settings::{Settings, SettingsError, TargetSettings, parse_span};
use self::{
    connection::options_of,
    target::{Limits, Target},
};

/// The servers of an agent, as one source.
#[derive(Debug)]
pub struct MongoDb {
    runtime: Runtime,
    targets: Vec<Target>,
    /// Of the first round: since when the agent counts what it asks.
    started_ms: Option<i64>,
}

impl MongoDb {
    /// A source that asks these servers; nothing is connected before the first round.
    ///
    /// # Errors
    /// When a target cannot be read, two have the same name, or the system gives no thread.
    pub fn new(settings: &Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        // One thread for what the driver does between rounds.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("mongodb")
            .enable_all()
            .build()
            .map_err(|cause| SettingsError(format!("cannot start a thread: {cause}")))?;
        let every = Some(settings.databases_every).filter(|every| !every.is_zero());
        let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        let limits = Limits { timeout: settings.timeout, databases_every_ms: every.map(millis) };
        let mut targets: Vec<Target> = Vec::new();
        for own in &settings.targets {
            let options = runtime.block_on(options_of(own, settings.timeout))?;
            for (address, options) in options {
                let target = Target::new(&address, options, own, limits);
                if targets.iter().any(|other| other.host() == target.host()) {
                    let host = target.host();
                    return Err(SettingsError(format!("target {host}: it is named twice")));
                }
                targets.push(target);
            }
        }
        Ok(Self { runtime, targets, started_ms: None })
    }
}

impl Source for MongoDb {
    fn name(&self) -> &'static str {
        "mongodb"
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let started_ms = *self.started_ms.get_or_insert(now_ms);
        let rounds = self.targets.iter_mut().map(|target| target.sample(now_ms, started_ms));
        let read = self.runtime.block_on(async { join_all(rounds).await });
        let windows: BTreeMap<&str, f64> =
            self.targets.iter().filter_map(Target::window_of_primary).collect();
        for (target, own) in self.targets.iter().zip(read) {
            readings.append(own);
            let window_of = |set: &str| windows.get(set).copied();
            if let Some(seconds) = target.headroom_seconds(window_of) {
                let tags = [("host", target.host())];
                readings.gauge("mongodb_oplog_master_lag_time_diff", "seconds", &tags, seconds);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
