//! Readings of `replSetGetStatus` and of the oplog, as pure functions of the documents.

use granary_agent_kit::Readings;
use mongodb::bson::{Bson, Document};

use crate::field::{is_true, number, text, time_ms};

/// The maximum number of members; a set has at most 50.
const MEMBERS_MAX: usize = 100;
const GIB: f64 = 1_073_741_824.0;

/// The lag of a member.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Lag {
    /// The lag behind the primary by the times of operations; `None` for the primary.
    pub(crate) seconds: Option<f64>,
}

/// Adds the readings of a member's set, and returns the member's lag.
pub(crate) fn push_replication(status: &Document, readings: &mut Readings) -> Lag {
    if let Some(state) = number(status, "myState") {
        readings.gauge("mongodb_state", "", &[], state);
    }
    if let Some(term) = number(status, "term") {
        readings.gauge("mongodb_term", "", &[], term);
    }
    let Ok(members) = status.get_array("members") else { return Lag::default() };
    let members: Vec<&Document> =
        members.iter().take(MEMBERS_MAX).filter_map(Bson::as_document).collect();
    let is_healthy = |member: &&&Document| {
        number(member, "health") == Some(1.0)
            && number(member, "state").is_some_and(is_healthy_state)
    };
    let healthy = members.iter().filter(is_healthy).count();
    let unhealthy = members.len() - healthy;
    readings.gauge("mongodb_members_healthy", "members", &[], healthy as f64);
    readings.gauge("mongodb_members_unhealthy", "members", &[], unhealthy as f64);
    let primary = members.iter().find(|member| number(member, "state") == Some(PRIMARY));
    let has_primary = f64::from(u8::from(primary.is_some()));
    readings.gauge("mongodb_has_primary", "", &[], has_primary);
    if let Some(elected_ms) = primary.and_then(|primary| time_ms(primary, "electionDate")) {
        let elected = elected_ms as f64 / 1000.0;
        readings.gauge("mongodb_primary_elected", "seconds", &[], elected);
    }
    push_members(status, &members, readings);
    primary.map_or(Lag::default(), |primary| push_lags(primary, &members, readings))
}

/// Adds the state of each member as the queried member sees it.
fn push_members(status: &Document, members: &[&Document], readings: &mut Readings) {
    let now_ms = time_ms(status, "date");
    for member in members {
        let Some(name) = text(member, "name") else { continue };
        let tags = [("member", name)];
        let heartbeat_ms = time_ms(member, "lastHeartbeat").filter(|time| *time > 0);
        let age_s = now_ms.zip(heartbeat_ms).map(|(now, last)| (now - last).max(0) as f64 / 1000.0);
        for (metric, unit, value) in [
            ("mongodb_member_state", "", number(member, "state")),
            ("mongodb_member_health", "", number(member, "health")),
            ("mongodb_member_ping", "milliseconds", number(member, "pingMs")),
            ("mongodb_member_heartbeat_age", "seconds", age_s),
        ] {
            if let Some(value) = value {
                readings.gauge(metric, unit, &tags, value);
            }
        }
    }
}

const PRIMARY: f64 = 1.0;
const SECONDARY: f64 = 2.0;
const ARBITER: f64 = 7.0;
/// The states of a replicating member: a secondary, or a member that recovers, starts up or rolls
/// back and falls behind in the meantime.
const REPLICATING_STATES: [f64; 4] = [SECONDARY, 3.0, 5.0, 9.0];

fn is_healthy_state(state: f64) -> bool {
    [PRIMARY, SECONDARY, ARBITER].contains(&state)
}

/// Adds the lag of a replicating member, or for the primary the largest lag of the other members.
/// Returns the lag of a replicating member.
fn push_lags(primary: &Document, members: &[&Document], readings: &mut Readings) -> Lag {
    let is_self = |member: &&&Document| is_true(member, "self");
    let lag_seconds = |member: &Document, operation_time: fn(&Document) -> Option<i64>| {
        let (of_primary, of_member) = (operation_time(primary)?, operation_time(member)?);
        // The member's operation can be later than the primary's; the lag is then 0.
        Some((of_primary.saturating_sub(of_member).max(0)) as f64 / 1000.0)
    };
    let Some(member) = members.iter().find(is_self) else { return Lag::default() };
    match number(member, "state") {
        Some(state) if REPLICATING_STATES.contains(&state) => {
            let lag = lag_seconds(member, operation_ms);
            if let Some(seconds) = lag {
                readings.gauge("mongodb_oplog_slave_lag_master_time", "seconds", &[], seconds);
            }
            if let Some(seconds) = lag_seconds(member, wall_ms) {
                readings.gauge("mongodb_oplog_replication_lag", "seconds", &[], seconds);
            }
            Lag { seconds: lag }
        }
        Some(PRIMARY) => {
            let replicating_members = members.iter().filter(|m| {
                number(m, "state").is_some_and(|state| REPLICATING_STATES.contains(&state))
            });
            let lags = replicating_members.filter_map(|member| lag_seconds(member, wall_ms));
            if let Some(largest) = lags.reduce(f64::max) {
                readings.gauge("mongodb_oplog_replication_lag", "seconds", &[], largest);
            }
            Lag::default()
        }
        _ => Lag::default(),
    }
}

/// Returns the time of the last operation in the oplog, or `None` before the first operation.
fn operation_ms(member: &Document) -> Option<i64> {
    let time = time_ms(member, "optime.ts").or_else(|| time_ms(member, "optimeDate"));
    time.filter(|time| *time > 0)
}

/// Returns the time of the last operation by the primary's clock, with milliseconds if available.
fn wall_ms(member: &Document) -> Option<i64> {
    let time = time_ms(member, "lastAppliedWallTime").or_else(|| time_ms(member, "optimeDate"));
    time.filter(|time| *time > 0)
}

/// The state of an oplog.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Oplog {
    /// The time from the first to the last operation.
    pub(crate) window_seconds: f64,
    /// The uncompressed size of the operations.
    pub(crate) bytes: Option<f64>,
}

impl Oplog {
    /// Parses the first and the last operation, and `$collStats`.
    pub(crate) fn of(first: &Document, last: &Document, stats: Option<&Document>) -> Option<Self> {
        let (first, last) = (time_ms(first, "ts")?, time_ms(last, "ts")?);
        let window_seconds = last.saturating_sub(first).max(0) as f64 / 1000.0;
        let bytes = stats.and_then(|stats| number(stats, "storageStats.size"));
        Some(Self { window_seconds, bytes })
    }

    /// Adds the window of the oplog, and the rate at which operations fill it.
    pub(crate) fn push_values(&self, readings: &mut Readings) {
        readings.gauge("mongodb_oplog_master_time", "seconds", &[], self.window_seconds);
        if let Some(bytes) = self.bytes.filter(|_| self.window_seconds > 0.0) {
            let rate = bytes / GIB / (self.window_seconds / 3600.0);
            readings.gauge("mongodb_oplog_rate_gb_per_hour", "gibibytes/hour", &[], rate);
        }
    }
}

/// Returns the first document of a cursor's response.
pub(crate) fn first_document(response: &Document) -> Option<&Document> {
    response.get_document("cursor").ok()?.get_array("firstBatch").ok()?.first()?.as_document()
}

#[cfg(test)]
mod tests;
