//! The values of one collection and of its indexes, from `$collStats` and `$indexStats`.
//!
//! Must never know: the sweep over collections.

use std::collections::BTreeMap;

use granary_agent_kit::Readings;
use mongodb::bson::{Bson, Document};

use crate::field::{as_number, number, text, time_ms, value};

/// The maximum number of indexes of a collection; a server allows 64.
pub(super) const INDEXES_MAX: usize = 64;

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
pub(super) type Namespace = (String, String);

/// The values of a collection.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CollectionStats {
    pub(super) namespace: Namespace,
    gauges: [Option<f64>; GAUGES.len()],
    counters: [Option<f64>; COUNTERS.len()],
    /// The size of each index.
    index_sizes: BTreeMap<String, f64>,
    /// The uses of each index, and the start of counting.
    index_uses: BTreeMap<String, (f64, Option<i64>)>,
}

impl CollectionStats {
    pub(super) fn of(namespace: Namespace, stats: &Document) -> Self {
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

    /// Adds the uses of the indexes in a response to `$indexStats`.
    pub(super) fn note_index_uses(&mut self, response: &Document) {
        let batch = response.get_document("cursor").and_then(|c| c.get_array("firstBatch"));
        for index in batch.into_iter().flatten().take(INDEXES_MAX).filter_map(Bson::as_document) {
            if let (Some(name), Some(uses)) = (text(index, "name"), number(index, "accesses.ops")) {
                let since_ms = time_ms(index, "accesses.since");
                self.index_uses.insert(name.to_owned(), (uses, since_ms));
            }
        }
    }

    pub(super) fn size(&self) -> f64 {
        self.gauges[0].unwrap_or(0.0)
    }

    pub(super) fn push_values(&self, started_ms: Option<i64>, readings: &mut Readings) {
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
