//! Slow operations, from the collection `system.profile` of each database: their number and times
//! by collection and shape. The profiler of the server decides what is slow.

mod shape;

use std::collections::BTreeMap;

use granary_agent_kit::Readings;
use mongodb::bson::{Bson, DateTime, Document, doc};

use self::shape::{operation_of, shape_of};
use crate::{
    connection::{APP_NAME, Fault},
    field::{number, text, time_ms},
};

/// The maximum number of shapes with series; all others are counted together.
const SHAPES_MAX: usize = 50;
/// The maximum number of databases whose profiles are read.
const DATABASES_MAX: usize = 200;
/// The time after which a shape that did not occur again loses its series.
const IDLE_MAX_MS: i64 = 86_400_000;
/// The time after which a profile that the user may not read is tried again.
const REFUSED_INTERVAL_MS: i64 = 3_600_000;
/// The maximum number of documents in a response.
const BATCH_MAX: usize = 1_000;
/// The upper bounds of the histogram, in seconds, as their tags.
const BOUNDS: [(f64, &str); 9] = [
    (0.1, "0.1"),
    (0.25, "0.25"),
    (0.5, "0.5"),
    (1.0, "1"),
    (2.5, "2.5"),
    (5.0, "5"),
    (10.0, "10"),
    (30.0, "30"),
    (60.0, "60"),
];
/// The tag of the shapes beyond the limit.
const OTHER: &str = "other";

/// The tags of a shape: database, collection, operation, shape.
type Key = [String; 4];

/// The operations of a shape since the agent counts them.
#[derive(Debug, Clone, Default, PartialEq)]
struct Totals {
    /// The time of the last response without them, at which their counters start.
    start_ms: i64,
    last_ms: i64,
    count: f64,
    seconds: f64,
    /// The operations up to each bound.
    up_to: [f64; BOUNDS.len()],
    documents_examined: f64,
    keys_examined: f64,
    documents_returned: f64,
}

/// The part of a profile that was read.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Position {
    /// The profile was not read yet; its documents are older than the agent.
    Unknown,
    /// The profile was empty.
    Empty,
    /// The time of the last document, and the number of documents with this time.
    At(i64, usize),
}

/// The slow operations of a server.
#[derive(Debug, Default)]
pub(crate) struct SlowOperations {
    positions: BTreeMap<String, Position>,
    /// The last database that was tried for a profile.
    last_tried: String,
    shapes: BTreeMap<Key, Totals>,
    read_ms: i64,
    pub(crate) next_ms: i64,
    /// The databases that refused the query, with the time after which each is tried again.
    refused: BTreeMap<String, (i64, Fault)>,
    /// The database whose profile was overwritten before the agent read all of it.
    overwritten: Option<String>,
}

/// Builds the query for the documents of a profile since a time, or for the time of the last one.
fn profile_command(since_ms: Option<i64>) -> Document {
    let Some(since_ms) = since_ms else {
        let sort = doc! { "ts": -1 };
        return doc! {
            "find": "system.profile", "filter": { "appName": { "$ne": APP_NAME } }, "sort": sort,
            "projection": { "ts": 1 }, "limit": 1, "singleBatch": true,
        };
    };
    let since = DateTime::from_millis(since_ms);
    doc! {
        "find": "system.profile",
        "filter": { "ts": { "$gte": since }, "appName": { "$ne": APP_NAME } },
        "sort": { "$natural": 1 },
        // These parts are long, and not used.
        "projection": {
            "execStats": 0, "locks": 0, "storage": 0, "command.lsid": 0, "command.u": 0,
            "command.documents": 0, "command.updates": 0, "originatingCommand.lsid": 0,
        },
        "limit": BATCH_MAX as i32, "batchSize": BATCH_MAX as i32, "singleBatch": true,
    }
}

impl SlowOperations {
    /// Replaces the databases of the server.
    pub(crate) fn set_databases(&mut self, names: impl Iterator<Item = String>) {
        let names = names.filter(|name| !matches!(name.as_str(), "admin" | "config" | "local"));
        let position = |name: &String| self.positions.get(name).copied();
        let positions = names.take(DATABASES_MAX).map(|name| {
            let position = position(&name).unwrap_or(Position::Unknown);
            (name, position)
        });
        self.positions = positions.collect();
        self.refused.retain(|name, _| self.positions.contains_key(name));
    }

    /// Returns the databases with a profile, and the next ones to try for a profile.
    pub(crate) fn due(&mut self, tries: usize, now_ms: i64) -> Vec<String> {
        let is_refused =
            |name: &String| self.refused.get(name).is_some_and(|(retry_ms, _)| now_ms < *retry_ms);
        let (profiled, others): (Vec<_>, Vec<_>) = self
            .positions
            .iter()
            .filter(|(name, _)| !is_refused(name))
            .partition(|(_, at)| matches!(at, Position::At(..)));
        let split = others.partition_point(|(name, _)| **name <= self.last_tried);
        let (before, after) = others.split_at(split);
        let tried: Vec<String> =
            after.iter().chain(before).take(tries).map(|(name, _)| (*name).clone()).collect();
        if let Some(last) = tried.last() {
            self.last_tried.clone_from(last);
        }
        profiled.into_iter().map(|(name, _)| name.clone()).chain(tried).collect()
    }

    /// Returns the query for the profile of a database.
    pub(crate) fn command(&self, database: &str) -> Option<Document> {
        let since_ms = match self.positions.get(database)? {
            Position::Unknown => None,
            Position::Empty => Some(0),
            Position::At(last_ms, _) => Some(*last_ms),
        };
        Some(profile_command(since_ms))
    }

    /// Records that a database refused the query. The other databases continue.
    pub(crate) fn note_refusal(&mut self, database: &str, fault: Fault, now_ms: i64) {
        let wait_ms = if fault.is_permanent() { REFUSED_INTERVAL_MS } else { 0 };
        if self.positions.contains_key(database) {
            let retry_ms = now_ms.saturating_add(wait_ms);
            self.refused.insert(database.to_owned(), (retry_ms, fault));
        }
    }

    /// Returns the message about the databases that refuse the query.
    pub(crate) fn refusal(&self) -> Option<String> {
        let (database, (_, fault)) = self.refused.first_key_value()?;
        let count = self.refused.len();
        Some(format!("{count} databases cannot be read; {database}: {fault}"))
    }

    /// Records the response to the query for a database.
    pub(crate) fn note_response(&mut self, database: &str, response: &Document, now_ms: i64) {
        self.refused.remove(database);
        let batch =
            response.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
        let entries: Vec<(i64, &Document)> = batch
            .into_iter()
            .flatten()
            .filter_map(Bson::as_document)
            .filter_map(|entry| Some((time_ms(entry, "ts")?, entry)))
            .take(BATCH_MAX)
            .collect();
        let Some(position) = self.positions.get(database).copied() else { return };
        let (seen_ms, seen) = match position {
            Position::At(seen_ms, seen) => (seen_ms, seen),
            Position::Empty | Position::Unknown => (0, 0),
        };
        let first_ms = entries.first().map(|(time_ms, _)| *time_ms);
        if seen > 0 && first_ms.is_some_and(|first_ms| first_ms > seen_ms) {
            self.overwritten = Some(database.to_owned());
        }
        let known =
            entries.iter().take(seen).take_while(|(time_ms, _)| *time_ms == seen_ms).count();
        if position != Position::Unknown {
            for (_, entry) in entries.iter().skip(known) {
                self.count(database, entry, now_ms);
            }
        }
        let last_ms = entries.iter().map(|(time_ms, _)| *time_ms).max();
        let after = match position {
            Position::Unknown => Position::Empty,
            Position::Empty => position,
            // The profile was dropped, or only the agent's own operations followed.
            Position::At(seen_ms, _) => Position::At(seen_ms, 0),
        };
        let position = last_ms.map_or(after, |last_ms| {
            Position::At(last_ms, entries.iter().filter(|(time, _)| *time == last_ms).count())
        });
        self.positions.insert(database.to_owned(), position);
    }

    fn count(&mut self, database: &str, entry: &Document, now_ms: i64) {
        let namespace = text(entry, "ns").unwrap_or_default();
        let collection = namespace.split_once('.').map_or("", |(_, collection)| collection);
        let key = [database, collection, operation_of(entry), &shape_of(entry)].map(str::to_owned);
        let is_full = self.shapes.len() >= SHAPES_MAX && !self.shapes.contains_key(&key);
        let key = if is_full { [OTHER; 4].map(str::to_owned) } else { key };
        let start_ms = self.read_ms;
        let totals =
            self.shapes.entry(key).or_insert_with(|| Totals { start_ms, ..Totals::default() });
        totals.add(entry, now_ms);
    }

    /// Ends a round: the counters of shapes that occur later start now.
    pub(crate) fn end_round(&mut self, now_ms: i64) {
        self.read_ms = now_ms;
        self.shapes.retain(|_, totals| now_ms.saturating_sub(totals.last_ms) < IDLE_MAX_MS);
    }

    /// Adds the values.
    pub(crate) fn push_values(&self, readings: &mut Readings) {
        for ([database, collection, operation, shape], totals) in &self.shapes {
            let tags = [
                ("database", database.as_str()),
                ("collection", collection.as_str()),
                ("operation", operation.as_str()),
                ("shape", shape.as_str()),
            ];
            totals.push_values(tags, readings);
        }
    }

    /// Returns the reason why operations are missing, once.
    pub(crate) fn take_problem(&mut self) -> Option<String> {
        let database = self.overwritten.take()?;
        Some(format!(
            "operations are missing, because {database}.system.profile was overwritten between two \
             rounds: enlarge it, or raise slowms"
        ))
    }
}

impl Totals {
    fn add(&mut self, entry: &Document, now_ms: i64) {
        let value = |field| number(entry, field).filter(|value| *value >= 0.0).unwrap_or(0.0);
        let seconds = value("millis") / 1000.0;
        self.last_ms = now_ms;
        self.count += 1.0;
        self.seconds += seconds;
        for (up_to, (bound, _)) in self.up_to.iter_mut().zip(BOUNDS) {
            *up_to += f64::from(u8::from(seconds <= bound));
        }
        self.documents_examined += value("docsExamined");
        self.keys_examined += value("keysExamined");
        self.documents_returned += value("nreturned");
    }

    fn push_values(&self, tags: [(&'static str, &str); 4], readings: &mut Readings) {
        let [a, b, c, d] = tags;
        let start = Some(self.start_ms);
        let bucket = "mongodb_slow_operation_time_bucket";
        let bounds = BOUNDS.iter().map(|(_, bound)| *bound).zip(self.up_to);
        for (bound, up_to) in bounds.chain([("+Inf", self.count)]) {
            let tags = [a, b, c, d, ("le", bound)];
            readings.counter(bucket, "operations", &tags, up_to, start);
        }
        for (metric, unit, value) in [
            ("mongodb_slow_operation_time_count", "operations", self.count),
            ("mongodb_slow_operation_time_sum", "seconds", self.seconds),
            ("mongodb_slow_operation_documents_examined", "documents", self.documents_examined),
            ("mongodb_slow_operation_keys_examined", "keys", self.keys_examined),
            ("mongodb_slow_operation_documents_returned", "documents", self.documents_returned),
        ] {
            readings.counter(metric, unit, &tags, value, start);
        }
    }
}

#[cfg(test)]
mod tests;
