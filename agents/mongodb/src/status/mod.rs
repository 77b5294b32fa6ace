//! Readings of `serverStatus`, as a pure function of the document, the previous documents, and the
//! number of cores.

mod internals;
mod intervals;
mod rows;

use granary_agent_kit::Readings;
use mongodb::bson::Document;

pub(crate) use self::intervals::Intervals;
use self::{
    internals::INTERNALS,
    rows::{ELECTIONS, FieldType, ROWS},
};
use crate::field::{number, text, time_ms};

/// The tolerance of a server's computed start time.
const START_TOLERANCE_MS: u64 = 5_000;
/// The maximum number of remembered restarts.
const RESTARTS_MAX: usize = 1_000;
const HOUR_MS: i64 = 3_600_000;

/// The state of a server between rounds.
#[derive(Debug, Default)]
pub(crate) struct ServerState {
    /// The start of the server, at which its counters start.
    started_ms: Option<i64>,
    pid: Option<f64>,
    uptime_ms: Option<f64>,
    /// The restarts of the last hour, oldest first.
    restarts: Vec<i64>,
    intervals: Intervals,
}

impl ServerState {
    /// Returns the start of the server.
    pub(crate) fn started_ms(&self) -> Option<i64> {
        self.started_ms
    }

    /// Updates the start of the server. The computed time jitters, so the previous time is kept
    /// until the server restarts.
    fn note_start(&mut self, status: &Document, now_ms: i64) {
        let uptime_ms = number(status, "uptimeMillis")
            .or_else(|| number(status, "uptime").map(|seconds| seconds * 1000.0));
        let Some(uptime_ms) = uptime_ms.filter(|uptime| *uptime >= 0.0) else { return };
        let pid = number(status, "pid");
        let start = now_ms.saturating_sub(uptime_ms as i64);
        let is_close =
            self.started_ms.is_some_and(|previous| previous.abs_diff(start) < START_TOLERANCE_MS);
        // A clock change moves the computed start of a running process. In a container, the server
        // usually has the ID 1, so equal IDs prove nothing.
        let is_pid_meaningful = pid.is_some_and(|pid| pid > 1.0);
        let is_same_run = self.pid == pid
            && self.uptime_ms.is_some_and(|before| before <= uptime_ms)
            && (is_close || is_pid_meaningful);
        if !is_same_run {
            // The first contact does not count as a restart, even if the server has just started.
            if self.started_ms.replace(start).is_some() {
                if self.restarts.len() == RESTARTS_MAX {
                    self.restarts.remove(0);
                }
                self.restarts.push(start);
            }
            self.intervals = Intervals::default();
        }
        (self.pid, self.uptime_ms) = (pid, Some(uptime_ms));
        self.restarts.retain(|start| now_ms.saturating_sub(*start) < HOUR_MS);
    }
}

/// Adds the readings of `serverStatus` at `now_ms`. `cores` is the number of cores of the server's
/// machine, if known.
pub(crate) fn read(
    status: &Document,
    now_ms: i64,
    cores: Option<f64>,
    server_state: &mut ServerState,
    readings: &mut Readings,
) {
    server_state.note_start(status, now_ms);
    let start = server_state.started_ms;
    for row in ROWS.iter().chain(INTERNALS) {
        let Some(found) = row.paths.iter().find_map(|path| number(status, path)) else { continue };
        let value = found * row.factor;
        match row.field_type {
            FieldType::Counter => readings.counter(row.metric, row.unit, &[], value, start),
            FieldType::Gauge => readings.gauge(row.metric, row.unit, &[], value),
        }
    }
    let restarts = server_state.restarts.len() as f64;
    readings.gauge("mongodb_restarts_in_last_hour", "restarts", &[], restarts);
    push_elections(status, start, readings);
    push_derived(status, readings);
    server_state.intervals.read(status, now_ms, cores, readings);
}

fn push_elections(status: &Document, start: Option<i64>, readings: &mut Readings) {
    let sum = |field: &str| {
        let count = |reason: &&str| number(status, &format!("electionMetrics.{reason}.{field}"));
        ELECTIONS.iter().filter_map(count).reduce(|a, b| a + b)
    };
    for (metric, field) in
        [("mongodb_elections_called", "called"), ("mongodb_elections_won", "successful")]
    {
        if let Some(total) = sum(field) {
            readings.counter(metric, "elections", &[], total, start);
        }
    }
}

/// Adds the values that are computed from several fields of a response.
fn push_derived(status: &Document, readings: &mut Readings) {
    let number = |path: &str| number(status, path);
    if let (Some(current), Some(available)) =
        (number("connections.current"), number("connections.available"))
        && current + available > 0.0
    {
        let percent = current / (current + available) * 100.0;
        readings.gauge("mongodb_connections_percent", "percent", &[], percent);
    }
    if let Some(virtual_mb) = number("mem.virtual") {
        let computed = (virtual_mb - number("mem.mapped").unwrap_or(0.0)) * 1_048_576.0;
        readings.gauge("mongodb_computed_memory", "bytes", &[], computed);
    }
    let cache = |name: &str| number(&format!("wiredTiger.cache.{name}"));
    if let Some(max) = cache("maximum bytes configured").filter(|max| *max > 0.0) {
        for (metric, part) in [
            ("mongodb_cache_fill_ratio", cache("bytes currently in the cache")),
            ("mongodb_cache_dirty_fill_ratio", cache("tracked dirty bytes in the cache")),
        ] {
            if let Some(part) = part {
                readings.gauge(metric, "", &[], part / max);
            }
        }
    }
    if let Some(version) = text(status, "version").and_then(version_number) {
        readings.gauge("mongodb_version", "", &[], version);
    }
    if let Some(expires_ms) = time_ms(status, "security.SSLServerCertificateExpirationDate") {
        let expires = expires_ms as f64 / 1000.0;
        readings.gauge("mongodb_certificate_expires", "seconds", &[], expires);
    }
}

/// Returns a number that grows with the version, such as 70005 for 7.0.5.
fn version_number(version: &str) -> Option<f64> {
    let plain = version.split(['-', '+']).next()?;
    let mut parts = plain.split('.').map(|part| part.parse::<u16>().ok());
    let (major, minor) = (parts.next()??, parts.next()??);
    let patch = parts.next().flatten().unwrap_or(0);
    Some(f64::from(major) * 10_000.0 + f64::from(minor) * 100.0 + f64::from(patch))
}

#[cfg(test)]
mod tests;
