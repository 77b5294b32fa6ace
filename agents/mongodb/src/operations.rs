//! A summary of the running operations, by `$currentOp`. The server groups them, so neither
//! namespaces nor values of operations leave it.

use granary_agent_kit::Readings;
use mongodb::bson::{Bson, Document, doc};

use crate::{
    connection::APP_NAME,
    field::{number, text},
};

/// The values of the tag `operation`. All other kinds count as the last one.
const KINDS: [&str; 7] = ["query", "insert", "update", "remove", "getmore", "command", "other"];

/// The running operations at one time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct RunningOperations {
    by_kind: [f64; KINDS.len()],
    waiting_for_lock: f64,
    waiting_for_flow_control: f64,
    oldest_seconds: f64,
}

/// Builds the query. Threads of the server, waiting readers of change streams and of the oplog, and
/// waiting `hello` commands of drivers do not count: they run for hours.
pub(crate) fn current_operations_command(is_router: bool) -> Document {
    let mut current_op = doc! { "allUsers": true, "idleConnections": false, "idleSessions": false };
    if is_router {
        current_op.insert("localOps", true);
    }
    let absent = || doc! { "$exists": false };
    let count_if = |field: &str| doc! { "$sum": { "$cond": [field, 1, 0] } };
    doc! {
        "aggregate": 1,
        "pipeline": [
            { "$currentOp": current_op },
            { "$match": {
                "active": true, "op": { "$ne": "none" }, "ns": { "$ne": "local.oplog.rs" },
                "command.hello": absent(), "command.isMaster": absent(),
                "command.ismaster": absent(), "cursor.awaitData": { "$ne": true },
                "appName": { "$ne": APP_NAME },
            } },
            { "$group": {
                "_id": "$op", "n": { "$sum": 1 }, "oldest": { "$max": "$microsecs_running" },
                "lock": count_if("$waitingForLock"), "flow": count_if("$waitingForFlowControl"),
            } },
        ],
        "cursor": {},
    }
}

impl RunningOperations {
    /// Parses the response.
    pub(crate) fn of(response: &Document) -> Self {
        let mut operations = Self::default();
        let groups = response.get_document("cursor").and_then(|c| c.get_array("firstBatch"));
        for group in groups.into_iter().flatten().filter_map(Bson::as_document) {
            let kind = text(group, "_id").unwrap_or_default();
            let index = KINDS.iter().position(|known| *known == kind);
            let value = |field: &str| number(group, field).unwrap_or(0.0);
            operations.by_kind[index.unwrap_or(KINDS.len() - 1)] += value("n");
            operations.waiting_for_lock += value("lock");
            operations.waiting_for_flow_control += value("flow");
            operations.oldest_seconds = operations.oldest_seconds.max(value("oldest") / 1e6);
        }
        operations
    }

    /// Adds the values.
    pub(crate) fn push_values(&self, readings: &mut Readings) {
        for (kind, count) in KINDS.iter().zip(self.by_kind) {
            let tags = [("operation", *kind)];
            readings.gauge("mongodb_running_operations", "operations", &tags, count);
        }
        for (metric, unit, value) in [
            ("mongodb_operations_waiting_for_lock", "operations", self.waiting_for_lock),
            (
                "mongodb_operations_waiting_for_flow_control",
                "operations",
                self.waiting_for_flow_control,
            ),
            ("mongodb_oldest_operation", "seconds", self.oldest_seconds),
        ] {
            readings.gauge(metric, unit, &[], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted_by_kind_and_unknown_kinds_as_other() {
        let group = |kind: &str, n: i32, oldest: i64, lock: i32| {
            doc! { "_id": kind, "n": n, "oldest": oldest, "lock": lock, "flow": 0 }
        };
        let groups = vec![
            group("query", 3, 2_500_000, 1),
            group("update", 2, 9_000_000, 2),
            group("killcursors", 1, 10, 0),
        ];
        let response = doc! { "cursor": { "firstBatch": groups, "id": 0_i64 }, "ok": 1.0 };
        let mut readings = Readings::default();
        RunningOperations::of(&response).push_values(&mut readings);
        let values: Vec<_> = readings.as_slice().iter().map(|reading| reading.value).collect();
        assert_eq!(values, [3.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0, 3.0, 0.0, 9.0]);
        for invalid in [doc! {}, doc! { "cursor": { "firstBatch": [1, { "_id": 3 }] } }] {
            assert_eq!(RunningOperations::of(&invalid).oldest_seconds, 0.0);
        }
    }
}
