//! The schedule of collections: the sweep that measures them, and its values.
//!
//! A sweep first measures all collections, one after the other, with a time limit per round, and
//! then queries the indexes of the largest ones. Only these have series. Each round contains the
//! values of the last complete sweep.

mod stats;

use std::collections::VecDeque;

use granary_agent_kit::Readings;
use mongodb::bson::{Document, doc};

use self::stats::{CollectionStats, INDEXES_MAX, Namespace};
use crate::{connection::Fault, field::text, replication::first_document};

/// The maximum number of collections in a sweep.
pub(crate) const COLLECTIONS_MAX: usize = 20_000;
/// The minimum ratio of the time between two sweeps to the duration of a sweep.
pub(crate) const WAIT_FACTOR: i64 = 100;

/// The next query of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// The collections of a database.
    List(String),
    /// The sizes of a collection.
    Measure(Namespace),
    /// The use of the indexes of a large collection.
    Indexes(Namespace),
}

impl Step {
    /// Returns the database and the command of the query.
    pub(crate) fn command(&self) -> (&str, Document) {
        let aggregate = |collection: &str, stages: Vec<Document>| {
            doc! { "aggregate": collection, "pipeline": stages, "cursor": {} }
        };
        match self {
            Self::List(database) => {
                let batch = doc! { "batchSize": COLLECTIONS_MAX as i32 };
                let filter = doc! { "type": "collection" };
                // The user needs no privilege to list names of collections that it may measure.
                let list = doc! {
                    "listCollections": 1, "nameOnly": true, "authorizedCollections": true,
                    "filter": filter, "cursor": batch,
                };
                (database, list)
            }
            Self::Measure((database, collection)) => {
                let stats = doc! { "$collStats": { "storageStats": {}, "latencyStats": {} } };
                // These sections are longer than all others together.
                let omitted = doc! { "storageStats.wiredTiger": 0, "storageStats.indexDetails": 0 };
                (database, aggregate(collection, vec![stats, doc! { "$project": omitted }]))
            }
            Self::Indexes((database, collection)) => {
                let project = doc! { "name": 1, "accesses": 1 };
                let stages = vec![doc! { "$indexStats": {} }, doc! { "$project": project }];
                let mut command = aggregate(collection, stages);
                command.insert("cursor", doc! { "batchSize": INDEXES_MAX as i32 });
                (database, command)
            }
        }
    }
}

/// Returns the cursor that the server keeps for the rest of a response.
pub(crate) fn open_cursor(response: &Document) -> Option<i64> {
    let id = response.get_document("cursor").ok()?.get_i64("id").ok()?;
    (id != 0).then_some(id)
}

/// Returns false for collections that belong to the server, such as those of the profiler, which a
/// monitoring user may not measure. The buckets of time series are data.
fn is_measured(collection: &str) -> bool {
    !collection.starts_with("system.") || collection.starts_with("system.buckets.")
}

/// The progress of a sweep, and the values of the last complete one.
#[derive(Debug, Default)]
pub(crate) struct CollectionSweep {
    /// The time at which the next sweep is due.
    next_ms: i64,
    steps: VecDeque<Step>,
    /// True from the start of a sweep until its values replace those of the previous one.
    is_running: bool,
    /// True until all collections are measured.
    is_measuring: bool,
    /// The step whose response is outstanding; the end of a round can interrupt it.
    unanswered: Option<Step>,
    elapsed_ms: i64,
    /// The number of collections in this sweep, and beyond its limit.
    listed: usize,
    unmeasured: usize,
    /// A database whose collections are too many for one response.
    cut: Option<String>,
    /// The number of refused queries in this sweep, and the first refusal.
    refused: usize,
    first_refusal: String,
    /// The largest collections so far, at most twice the number of collections with series.
    largest: Vec<CollectionStats>,
    latest: Option<(i64, Vec<CollectionStats>)>,
    /// The reason why the last complete sweep lacks collections.
    problem: Option<String>,
}

impl CollectionSweep {
    /// Returns true when a sweep is due.
    pub(crate) fn is_due(&self, now_ms: i64) -> bool {
        !self.is_running && now_ms >= self.next_ms
    }

    /// Starts a sweep of these databases. The database `local` is not part of it: its collections
    /// belong to the server.
    pub(crate) fn start(&mut self, databases: impl Iterator<Item = String>) {
        self.steps = databases.filter(|name| name != "local").map(Step::List).collect();
        (self.elapsed_ms, self.listed, self.unmeasured, self.refused) = (0, 0, 0, 0);
        (self.cut, self.unanswered) = (None, None);
        (self.is_running, self.is_measuring) = (true, true);
        self.largest.clear();
    }

    /// Removes and returns the next step. After the last measurement, the indexes of the
    /// `series_max` largest collections follow.
    pub(crate) fn next(&mut self, series_max: usize) -> Option<Step> {
        if let Some(step) = self.unanswered.take() {
            self.note_refusal(&step, &Fault::Unreachable("no answer in time".to_owned()));
        }
        if self.steps.is_empty() && self.is_measuring {
            self.is_measuring = false;
            self.keep_largest(series_max);
            let indexes = self.largest.iter().map(|stats| Step::Indexes(stats.namespace.clone()));
            self.steps = indexes.collect();
        }
        self.unanswered = self.steps.pop_front();
        self.unanswered.clone()
    }

    /// Records the response to a step. `series_max` is the number of collections with series.
    pub(crate) fn note_response(&mut self, step: Step, response: &Document, series_max: usize) {
        self.unanswered = None;
        match step {
            Step::List(database) => self.note_list(&database, response),
            Step::Measure(namespace) => {
                if let Some(stats) = first_document(response) {
                    self.largest.push(CollectionStats::of(namespace, stats));
                }
                if self.largest.len() >= series_max.saturating_mul(2) {
                    self.keep_largest(series_max);
                }
            }
            Step::Indexes(namespace) => self.note_indexes(&namespace, response),
        }
    }

    /// Records a refused step.
    pub(crate) fn note_refusal(&mut self, step: &Step, fault: &Fault) {
        self.unanswered = None;
        // The collection was dropped after it was listed.
        if fault.is_namespace_not_found() {
            return;
        }
        if self.refused == 0 {
            let object = match step {
                Step::List(database) => database.clone(),
                Step::Measure((database, name)) | Step::Indexes((database, name)) => {
                    format!("{database}.{name}")
                }
            };
            self.first_refusal = format!("{object}: {fault}");
        }
        self.refused += 1;
    }

    fn note_list(&mut self, database: &str, response: &Document) {
        if open_cursor(response).is_some() {
            self.cut = Some(database.to_owned());
        }
        let batch = response.get_document("cursor").and_then(|c| c.get_array("firstBatch"));
        for collection in batch.into_iter().flatten() {
            let name = collection.as_document().and_then(|collection| text(collection, "name"));
            let Some(name) = name.filter(|name| is_measured(name)) else { continue };
            if self.listed < COLLECTIONS_MAX {
                self.listed += 1;
                self.steps.push_back(Step::Measure((database.to_owned(), name.to_owned())));
            } else {
                self.unmeasured += 1;
            }
        }
    }

    fn note_indexes(&mut self, namespace: &Namespace, response: &Document) {
        let mut largest = self.largest.iter_mut();
        if let Some(stats) = largest.find(|stats| stats.namespace == *namespace) {
            stats.note_index_uses(response);
        }
    }

    fn keep_largest(&mut self, series_max: usize) {
        self.largest.sort_by(|a, b| {
            b.size().total_cmp(&a.size()).then_with(|| a.namespace.cmp(&b.namespace))
        });
        self.largest.truncate(series_max);
    }

    /// Ends the part of the sweep in this round, which took `elapsed_ms`. After a complete sweep,
    /// its values replace those of the previous one.
    pub(crate) fn end_round(&mut self, now_ms: i64, elapsed_ms: i64, interval_ms: i64) {
        self.elapsed_ms = self.elapsed_ms.saturating_add(elapsed_ms);
        if !self.is_running || self.is_measuring || !self.steps.is_empty() {
            return;
        }
        self.is_running = false;
        let wait_ms = interval_ms.max(self.elapsed_ms.saturating_mul(WAIT_FACTOR));
        self.next_ms = now_ms.saturating_add(wait_ms);
        self.latest = Some((now_ms, std::mem::take(&mut self.largest)));
        let Self { refused, unmeasured, first_refusal, cut, .. } = self;
        self.problem = if *refused > 0 {
            Some(format!("{refused} queries were refused, the first one for {first_refusal}"))
        } else if let Some(database) = cut {
            Some(format!("collections of {database} beyond the first response are not measured"))
        } else {
            let text =
                || format!("{unmeasured} collections beyond {COLLECTIONS_MAX} are not measured");
            (*unmeasured > 0).then(text)
        };
    }

    /// Returns the reason why the last complete sweep lacks collections.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Adds the values of the last complete sweep.
    pub(crate) fn push_values(&self, started_ms: Option<i64>, readings: &mut Readings) {
        if let Some((time_ms, collections)) = &self.latest {
            for stats in collections {
                stats.push_values(started_ms, readings);
            }
            let measured_s = *time_ms as f64 / 1000.0;
            readings.gauge("mongodb_collections_measured", "seconds", &[], measured_s);
        }
    }
}

#[cfg(test)]
mod tests;
