//! Readings of `$collStats` and `$indexStats`, and the schedule of collections.
//!
//! A sweep first measures all collections, one after the other, with a time limit per round, and
//! then queries the indexes of the largest ones. Only these have series. Each round contains the
//! values of the last complete sweep.

use std::collections::{BTreeMap, VecDeque};

use granary_agent_kit::Readings;
use mongodb::bson::{Bson, Document, doc};

use crate::{
    connection::Fault,
    field::{as_number, number, text, time_ms, value},
    replication::first_document,
};

/// The maximum number of collections in a sweep.
pub(crate) const COLLECTIONS_MAX: usize = 20_000;
/// The maximum number of indexes of a collection; a server allows 64.
const INDEXES_MAX: usize = 64;
/// The minimum ratio of the time between two sweeps to the duration of a sweep.
pub(crate) const WAIT_FACTOR: i64 = 100;

/// The gauges of a collection: metric, unit, field.
const GAUGES: [(&str, &str, &str); 8] = [
    ("mongodb_collection_size", "bytes", "storageStats.size"),
    ("mongodb_collection_storage_size", "bytes", "storageStats.storageSize"),
    ("mongodb_collection_free_storage_size", "bytes", "storageStats.freeStorageSize"),
    ("mongodb_collection_object_count", "documents", "storageStats.count"),
    ("mongodb_collection_average_object_size", "bytes", "storageStats.avgObjSize"),
    ("mongodb_collection_index_count", "indexes", "storageStats.nindexes"),
    ("mongodb_collection_index_size", "bytes", "storageStats.totalIndexSize"),
    ("mongodb_collection_orphaned", "documents", "storageStats.numOrphanDocs"),
];

/// The counters of a collection since the server's start: metric, unit, field, factor.
const COUNTERS: [(&str, &str, &str, f64); 6] = [
    ("mongodb_collection_reads", "operations", "latencyStats.reads.ops", 1.0),
    ("mongodb_collection_writes", "operations", "latencyStats.writes.ops", 1.0),
    ("mongodb_collection_commands", "operations", "latencyStats.commands.ops", 1.0),
    ("mongodb_collection_read_time", "seconds", "latencyStats.reads.latency", 1e-6),
    ("mongodb_collection_write_time", "seconds", "latencyStats.writes.latency", 1e-6),
    ("mongodb_collection_command_time", "seconds", "latencyStats.commands.latency", 1e-6),
];

/// A database and a collection.
type Namespace = (String, String);

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

/// The values of a collection.
#[derive(Debug, Clone, Default, PartialEq)]
struct CollectionStats {
    namespace: Namespace,
    gauges: [Option<f64>; GAUGES.len()],
    counters: [Option<f64>; COUNTERS.len()],
    /// The size of each index.
    index_sizes: BTreeMap<String, f64>,
    /// The uses of each index, and the start of counting.
    index_uses: BTreeMap<String, (f64, Option<i64>)>,
}

impl CollectionStats {
    fn of(namespace: Namespace, stats: &Document) -> Self {
        let sizes = value(stats, "storageStats.indexSizes").and_then(Bson::as_document);
        // Names of indexes can contain dots, so they are not paths.
        let size = |name: &String| Some((name.clone(), as_number(sizes?.get(name)?)?));
        let names = sizes.into_iter().flat_map(Document::keys);
        Self {
            namespace,
            gauges: GAUGES.map(|(.., field)| number(stats, field)),
            counters: COUNTERS.map(|(_, _, field, factor)| Some(number(stats, field)? * factor)),
            index_sizes: names.take(INDEXES_MAX).filter_map(size).collect(),
            index_uses: BTreeMap::new(),
        }
    }

    fn size(&self) -> f64 {
        self.gauges[0].unwrap_or(0.0)
    }

    fn push_values(&self, started_ms: Option<i64>, readings: &mut Readings) {
        let (database, collection) = &self.namespace;
        let tags = [("database", database.as_str()), ("collection", collection.as_str())];
        for ((metric, unit, _), found) in GAUGES.iter().zip(self.gauges) {
            if let Some(found) = found {
                readings.gauge(*metric, unit, &tags, found);
            }
        }
        for ((metric, unit, ..), found) in COUNTERS.iter().zip(self.counters) {
            if let Some(found) = found {
                readings.counter(*metric, unit, &tags, found, started_ms);
            }
        }
        let index_tags = |index| [tags[0], tags[1], ("index", index)];
        for (index, size) in &self.index_sizes {
            readings.gauge("mongodb_index_size", "bytes", &index_tags(index), *size);
        }
        for (index, (uses, since_ms)) in &self.index_uses {
            let tags = index_tags(index);
            readings.counter("mongodb_index_accesses", "accesses", &tags, *uses, *since_ms);
        }
    }
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
        let Some(stats) = self.largest.iter_mut().find(|stats| stats.namespace == *namespace)
        else {
            return;
        };
        let batch = response.get_document("cursor").and_then(|c| c.get_array("firstBatch"));
        for index in batch.into_iter().flatten().take(INDEXES_MAX).filter_map(Bson::as_document) {
            if let (Some(name), Some(uses)) = (text(index, "name"), number(index, "accesses.ops")) {
                let since_ms = time_ms(index, "accesses.since");
                stats.index_uses.insert(name.to_owned(), (uses, since_ms));
            }
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
mod tests {
    use super::*;

    const INTERVAL_MS: i64 = 1_200_000;

    fn batch(documents: Vec<Document>) -> Document {
        doc! { "cursor": { "firstBatch": documents, "id": 0_i64 }, "ok": 1.0 }
    }

    /// Returns the response to a step: collection `c7` has 7 bytes.
    fn response(step: &Step, collections: usize) -> Document {
        match step {
            Step::List(_) => {
                batch((0..collections).map(|n| doc! { "name": format!("c{n}") }).collect())
            }
            Step::Measure((_, name)) => {
                let size: i64 = name.strip_prefix('c').unwrap().parse().unwrap();
                let sizes = doc! { "_id_": 4096, "by.day": 8192 };
                batch(vec![doc! { "storageStats": { "size": size, "indexSizes": sizes } }])
            }
            Step::Indexes(_) => {
                let since = mongodb::bson::DateTime::from_millis(5);
                let accesses = doc! { "ops": 12_i64, "since": since };
                batch(vec![doc! { "name": "_id_", "accesses": accesses }])
            }
        }
    }

    fn run(sweep: &mut CollectionSweep, collections: usize, series_max: usize) {
        sweep.start(["local", "shop"].map(str::to_owned).into_iter());
        while let Some(step) = sweep.next(series_max) {
            let response = response(&step, collections);
            sweep.note_response(step, &response, series_max);
            assert!(sweep.largest.len() <= 2 * series_max);
        }
        sweep.end_round(1000, 5, INTERVAL_MS);
    }

    #[test]
    fn the_largest_collections_have_series_and_only_their_indexes_are_queried() {
        let mut sweep = CollectionSweep::default();
        run(&mut sweep, 50, 3);
        let mut readings = Readings::default();
        sweep.push_values(Some(1), &mut readings);
        assert_eq!(sweep.problem(), None);
        let of_metric = |metric: &str| {
            let all = readings.as_slice().iter().filter(move |r| r.metric == metric);
            let tag = |r: &granary_agent_kit::Reading, name: &str| {
                let tag = r.tags.iter().find(|(known, _)| known == name);
                tag.map(|(_, value)| value.clone()).unwrap_or_default()
            };
            all.map(|r| (r.value, tag(r, "collection"), tag(r, "index"))).collect::<Vec<_>>()
        };
        let expected = |value: f64, collection: &str, index: &str| {
            (value, collection.to_owned(), index.to_owned())
        };
        let sizes = [(49.0, "c49"), (48.0, "c48"), (47.0, "c47")];
        let sizes = sizes.map(|(size, name)| expected(size, name, ""));
        assert_eq!(of_metric("mongodb_collection_size"), sizes);
        assert_eq!(of_metric("mongodb_index_accesses").len(), 3);
        assert_eq!(of_metric("mongodb_index_size")[1], expected(8192.0, "c49", "by.day"));
        assert!(!sweep.is_due(1000 + INTERVAL_MS - 1) && sweep.is_due(1000 + INTERVAL_MS));
    }

    #[test]
    fn collections_beyond_the_limit_and_refusals_are_reported() {
        let mut sweep = CollectionSweep::default();
        run(&mut sweep, COLLECTIONS_MAX + 5, 1);
        assert_eq!(sweep.problem(), Some("5 collections beyond 20000 are not measured"));
        sweep.start(std::iter::once("shop".to_owned()));
        let list = sweep.next(1).unwrap();
        sweep.note_refusal(&list, &Fault::Refused(26, "NamespaceNotFound (26)".to_owned()));
        sweep.note_refusal(&list, &Fault::Refused(13, "Unauthorized (13)".to_owned()));
        assert_eq!(sweep.next(1), None);
        sweep.end_round(2000, 5, INTERVAL_MS);
        let problem = "1 queries were refused, the first one for shop: Unauthorized (13)";
        assert_eq!(sweep.problem(), Some(problem));
    }

    /// Regression: a query that did not return before the end of its round left no trace.
    #[test]
    fn a_query_that_the_end_of_a_round_interrupts_is_reported() {
        let mut sweep = CollectionSweep::default();
        sweep.start(std::iter::once("shop".to_owned()));
        let list = sweep.next(1).unwrap();
        sweep.note_response(list, &batch(vec![doc! { "name": "c1" }]), 1);
        assert!(matches!(sweep.next(1), Some(Step::Measure(_))));
        assert_eq!(sweep.next(1), None);
        sweep.end_round(1000, 5, INTERVAL_MS);
        let problem = "1 queries were refused, the first one for shop.c1: no answer in time";
        assert_eq!(sweep.problem(), Some(problem));
        assert!(!sweep.is_due(1000 + INTERVAL_MS - 1));
    }

    /// Regression: the profiler's collection was a refusal in each sweep.
    #[test]
    fn collections_of_the_server_are_not_measured() {
        let mut sweep = CollectionSweep::default();
        sweep.start(std::iter::once("shop".to_owned()));
        let list = sweep.next(1).unwrap();
        let names = ["system.profile", "system.buckets.weather", "orders", "system.views"];
        let names = names.map(|name| doc! { "name": name }).into();
        sweep.note_response(list, &batch(names), 1);
        let measured = |name: &str| Step::Measure(("shop".to_owned(), name.to_owned()));
        assert_eq!(sweep.steps, [measured("system.buckets.weather"), measured("orders")]);
    }

    /// Regression: the collections after the first batch were left out without a message.
    #[test]
    fn a_list_of_collections_that_is_cut_is_reported() {
        let mut sweep = CollectionSweep::default();
        sweep.start(std::iter::once("shop".to_owned()));
        let list = sweep.next(1).unwrap();
        let cut = doc! { "cursor": { "firstBatch": [{ "name": "c1" }], "id": 7_i64 } };
        sweep.note_response(list, &cut, 1);
        while let Some(step) = sweep.next(1) {
            let response = response(&step, 1);
            sweep.note_response(step, &response, 1);
        }
        sweep.end_round(1000, 5, INTERVAL_MS);
        let problem = "collections of shop beyond the first response are not measured";
        assert_eq!(sweep.problem(), Some(problem));
    }

    #[test]
    fn values_remain_until_a_later_sweep_is_complete() {
        let mut sweep = CollectionSweep::default();
        run(&mut sweep, 2, 5);
        let count = |sweep: &CollectionSweep| {
            let mut readings = Readings::default();
            sweep.push_values(None, &mut readings);
            readings.as_slice().iter().filter(|r| r.metric == "mongodb_collection_size").count()
        };
        sweep.start(std::iter::once("shop".to_owned()));
        let list = sweep.next(5).unwrap();
        let listed = response(&list, 4);
        sweep.note_response(list, &listed, 5);
        sweep.end_round(2000, 5, INTERVAL_MS);
        assert_eq!(count(&sweep), 2);
        while let Some(step) = sweep.next(5) {
            let response = response(&step, 4);
            let is_dropped = step == Step::Measure(("shop".to_owned(), "c0".to_owned()));
            if !is_dropped {
                sweep.note_response(step, &response, 5);
            }
        }
        sweep.end_round(3000, 5, INTERVAL_MS);
        assert_eq!(count(&sweep), 3, "a collection that was dropped meanwhile has no series");
        // Regression: a round after the sweep replaced its values by none, and postponed the next.
        sweep.end_round(4000, 0, INTERVAL_MS);
        assert_eq!(count(&sweep), 3);
        assert!(sweep.is_due(3000 + INTERVAL_MS));
    }
}
