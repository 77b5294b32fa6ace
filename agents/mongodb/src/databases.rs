//! `dbStats` to readings, and which databases are asked when.
//!
//! Databases are asked one after the other in sweeps, a bounded time each round: a server with
//! thousands of them is not asked for all at once, and no round waits for it.

use std::collections::VecDeque;

use granary_agent_kit::Readings;
use mongodb::bson::{Bson, Document};

use crate::field::{number, text};

/// Databases of a sweep; what is beyond is left out and said.
pub(crate) const DATABASES_MAX: usize = 1_000;
/// A sweep takes at most this share of the time between two.
const SHARE_MAX: i64 = 100;

/// Fields of `dbStats`, with the name and the unit of their series.
const FIELDS: [(&str, &str, &str); 10] = [
    ("mongodb_database_data_size", "bytes", "dataSize"),
    ("mongodb_database_storage_size", "bytes", "storageSize"),
    ("mongodb_database_index_size", "bytes", "indexSize"),
    ("mongodb_database_file_size", "bytes", "fileSize"),
    ("mongodb_database_average_object_size", "bytes", "avgObjSize"),
    ("mongodb_database_object_count", "documents", "objects"),
    ("mongodb_database_collection_count", "collections", "collections"),
    ("mongodb_database_index_count", "indexes", "indexes"),
    ("mongodb_database_extent_count", "extents", "numExtents"),
    ("mongodb_database_view_count", "views", "views"),
];

/// Where a sweep is.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// When the next one begins; none before the first.
    next_ms: i64,
    left: VecDeque<String>,
    totals: Totals,
    spent_ms: i64,
}

/// Sums over the databases of a sweep.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Totals {
    storage: f64,
    data: f64,
    index: f64,
    /// A database that could not be asked makes the sums wrong.
    is_partial: bool,
}

impl Sweep {
    /// Whether the names of databases are to be asked for: a sweep begins.
    pub(crate) fn is_due(&self, now_ms: i64) -> bool {
        self.left.is_empty() && now_ms >= self.next_ms
    }

    /// Begins with the databases that `listDatabases` names; gives how many there are too many.
    pub(crate) fn begin(&mut self, answer: &Document) -> usize {
        let names = answer.get_array("databases").map(Vec::as_slice).unwrap_or_default();
        let name = |database: &Bson| text(database.as_document()?, "name").map(str::to_owned);
        self.left = names.iter().filter_map(name).take(DATABASES_MAX).collect();
        (self.totals, self.spent_ms) = (Totals::default(), 0);
        names.len().saturating_sub(DATABASES_MAX)
    }

    /// The database that is asked next.
    pub(crate) fn next(&self) -> Option<&str> {
        self.left.front().map(String::as_str)
    }

    /// Takes in the answer of the next database, or that there is none.
    pub(crate) fn answered(&mut self, answer: Option<&Document>, readings: &mut Readings) {
        let Some(database) = self.left.pop_front() else { return };
        let Some(answer) = answer else {
            self.totals.is_partial = true;
            return;
        };
        let tags = [("database", database.as_str())];
        for (metric, unit, field) in FIELDS {
            if let Some(value) = number(answer, field) {
                readings.gauge(metric, unit, &tags, value);
            }
        }
        let part = |field: &str| number(answer, field).unwrap_or(0.0);
        self.totals.storage += part("storageSize");
        self.totals.data += part("dataSize");
        self.totals.index += part("indexSize");
    }

    /// The round's share is over after `spent_ms`; when the sweep is, too, its sums are added and
    /// the next one is at least `every_ms` away, further where databases answer slowly.
    pub(crate) fn pause(
        &mut self,
        now_ms: i64,
        spent_ms: i64,
        every_ms: i64,
        readings: &mut Readings,
    ) {
        self.spent_ms = self.spent_ms.saturating_add(spent_ms);
        if !self.left.is_empty() {
            return;
        }
        let wait_ms = every_ms.max(self.spent_ms.saturating_mul(SHARE_MAX));
        self.next_ms = now_ms.saturating_add(wait_ms);
        let Totals { storage, data, index, is_partial } = self.totals;
        if is_partial {
            return;
        }
        for (metric, value) in [
            ("mongodb_db_storage_total", storage),
            ("mongodb_db_data_size_total", data),
            ("mongodb_db_index_size_total", index),
            ("mongodb_logical_size", data + index),
        ] {
            readings.gauge(metric, "bytes", &[], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;

    use super::*;

    const EVERY_MS: i64 = 1_200_000;

    fn list(names: &[&str]) -> Document {
        let entry = |name: &&str| Bson::Document(doc! { "name": *name });
        doc! { "databases": names.iter().map(entry).collect::<Vec<_>>(), "ok": 1.0 }
    }

    fn stats(size: i32) -> Document {
        doc! { "dataSize": size, "storageSize": i64::from(size) * 2, "indexSize": 1.0, "views": 0 }
    }

    fn sum(readings: &Readings, metric: &str) -> Option<f64> {
        readings.as_slice().iter().find(|r| r.metric == metric).map(|r| r.value)
    }

    #[test]
    fn a_sweep_goes_on_in_the_next_round_and_ends_with_its_sums() {
        let (mut sweep, mut readings) = (Sweep::default(), Readings::default());
        assert!(sweep.is_due(0));
        assert_eq!(sweep.begin(&list(&["a", "b"])), 0);
        assert_eq!(sweep.next(), Some("a"));
        sweep.answered(Some(&stats(10)), &mut readings);
        sweep.pause(1000, 50, EVERY_MS, &mut readings);
        assert!(!sweep.is_due(1000), "it goes on where it was");
        assert_eq!(sum(&readings, "mongodb_db_data_size_total"), None);
        assert_eq!(sweep.next(), Some("b"));
        sweep.answered(Some(&stats(30)), &mut readings);
        sweep.pause(2000, 50, EVERY_MS, &mut readings);
        assert_eq!(sum(&readings, "mongodb_db_data_size_total"), Some(40.0));
        assert_eq!(sum(&readings, "mongodb_db_storage_total"), Some(80.0));
        assert_eq!(sum(&readings, "mongodb_logical_size"), Some(42.0));
        let b = readings.as_slice().iter().rfind(|r| r.metric == "mongodb_database_data_size");
        assert!(b.unwrap().tags.contains(&("database".into(), "b".to_owned())));
        assert!(!sweep.is_due(2000 + EVERY_MS - 1));
        assert!(sweep.is_due(2000 + EVERY_MS));
    }

    #[test]
    fn sums_without_one_database_are_none_and_slow_servers_are_asked_less_often() {
        let (mut sweep, mut readings) = (Sweep::default(), Readings::default());
        sweep.begin(&list(&["a", "b"]));
        sweep.answered(Some(&stats(10)), &mut readings);
        sweep.answered(None, &mut readings);
        sweep.pause(0, 60_000, EVERY_MS, &mut readings);
        assert_eq!(sum(&readings, "mongodb_db_data_size_total"), None);
        assert!(!sweep.is_due(5_999_999));
        assert!(sweep.is_due(6_000_000), "a hundred times what it took");
    }

    #[test]
    fn the_number_of_databases_is_bounded() {
        let mut sweep = Sweep::default();
        let names: Vec<String> = (0..DATABASES_MAX + 7).map(|index| index.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(sweep.begin(&list(&names)), 7);
        assert_eq!(sweep.left.len(), DATABASES_MAX);
        assert_eq!(sweep.begin(&doc! { "databases": "none" }), 0);
        assert_eq!(sweep.next(), None);
    }
}
