//! Readings of `dbStats`, and the schedule of databases.
//!
//! A sweep queries the databases one after the other, with a time limit per round, so that
//! thousands of databases neither burden the server nor delay rounds. Each round contains the last
//! values, with their times.

use std::collections::{BTreeMap, VecDeque};

use granary_agent_kit::Readings;
use mongodb::bson::{Bson, Document};

use crate::field::{number, text};

/// The maximum number of databases with their own series; totals include all.
pub(crate) const DATABASES_MAX: usize = 1_000;
/// The maximum number of databases in a sweep, more than a response can contain.
const NAMES_MAX: usize = 500_000;
/// The minimum ratio of the time between two sweeps to the duration of a sweep.
const WAIT_FACTOR: i64 = 100;

/// The fields of `dbStats`, with the metric and the unit.
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

/// The progress of a sweep, and the last values of the databases.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// The time at which the next sweep is due.
    next_ms: i64,
    /// The databases that the current sweep has not queried yet.
    remaining: VecDeque<String>,
    totals: Totals,
    elapsed_ms: i64,
    /// The number of databases without their own series.
    databases_without_series: usize,
    /// The last values by database; `None` before the first response and after a failure.
    latest: BTreeMap<String, Option<DatabaseStats>>,
    /// The sums of the last complete sweep, and its end.
    sums: Option<(i64, Totals)>,
}

/// The values of `dbStats` in the order of [`FIELDS`], and their time.
type DatabaseStats = (i64, [Option<f64>; FIELDS.len()]);

/// The sums over the databases of a sweep.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Totals {
    storage: f64,
    data: f64,
    index: f64,
    /// True when a database failed, which makes the sums incomplete.
    is_partial: bool,
}

impl Sweep {
    /// Returns true when a sweep is due.
    pub(crate) fn is_due(&self, now_ms: i64) -> bool {
        self.remaining.is_empty() && now_ms >= self.next_ms
    }

    /// Starts a sweep with the databases of `listDatabases`.
    pub(crate) fn start(&mut self, response: &Document) {
        let names = response.get_array("databases").map(Vec::as_slice).unwrap_or_default();
        let name = |database: &Bson| text(database.as_document()?, "name").map(str::to_owned);
        self.remaining = names.iter().filter_map(name).take(NAMES_MAX).collect();
        (self.totals, self.elapsed_ms) = (Totals::default(), 0);
        self.databases_without_series = self.remaining.len().saturating_sub(DATABASES_MAX);
        // Series of dropped databases end.
        let mut previous = std::mem::take(&mut self.latest);
        let with_series = self.remaining.iter().take(DATABASES_MAX);
        self.latest =
            with_series.map(|name| (name.clone(), previous.remove(name).flatten())).collect();
    }

    /// Returns the next database of the sweep.
    pub(crate) fn next(&self) -> Option<&str> {
        self.remaining.front().map(String::as_str)
    }

    /// Records the response of the next database, or its failure.
    pub(crate) fn note_response(&mut self, response: Option<&Document>, now_ms: i64) {
        let Some(database) = self.remaining.pop_front() else { return };
        let latest = self.latest.get_mut(&database);
        let measured =
            response.map(|response| (now_ms, FIELDS.map(|(.., field)| number(response, field))));
        if let Some(latest) = latest {
            *latest = measured;
        }
        let Some(response) = response else {
            self.totals.is_partial = true;
            return;
        };
        let field_value = |field: &str| number(response, field).unwrap_or(0.0);
        self.totals.storage += field_value("storageSize");
        self.totals.data += field_value("dataSize");
        self.totals.index += field_value("indexSize");
    }

    /// Ends the part of the sweep in this round, which took `elapsed_ms`. After a complete sweep,
    /// its sums become valid, and the next sweep is scheduled after `interval_ms`, or later when
    /// databases answer slowly.
    pub(crate) fn end_round(&mut self, now_ms: i64, elapsed_ms: i64, interval_ms: i64) {
        self.elapsed_ms = self.elapsed_ms.saturating_add(elapsed_ms);
        if !self.remaining.is_empty() {
            return;
        }
        let wait_ms = interval_ms.max(self.elapsed_ms.saturating_mul(WAIT_FACTOR));
        self.next_ms = now_ms.saturating_add(wait_ms);
        self.sums = Some((now_ms, self.totals)).filter(|(_, totals)| !totals.is_partial);
    }

    /// Adds the last values with their times. Returns the number of databases without their own
    /// series.
    pub(crate) fn push_values(&self, readings: &mut Readings) -> usize {
        for (database, measured) in &self.latest {
            let Some((time_ms, values)) = measured else { continue };
            let tags = [("database", database.as_str())];
            for ((metric, unit, _), value) in FIELDS.iter().zip(values) {
                if let Some(value) = value {
                    readings.gauge(*metric, unit, &tags, *value);
                }
            }
            let measured_s = *time_ms as f64 / 1000.0;
            readings.gauge("mongodb_database_measured", "seconds", &tags, measured_s);
        }
        if let Some((time_ms, Totals { storage, data, index, .. })) = self.sums {
            for (metric, value) in [
                ("mongodb_db_storage_total", storage),
                ("mongodb_db_data_size_total", data),
                ("mongodb_db_index_size_total", index),
                ("mongodb_logical_size", data + index),
            ] {
                readings.gauge(metric, "bytes", &[], value);
            }
            let measured_s = time_ms as f64 / 1000.0;
            readings.gauge("mongodb_databases_measured", "seconds", &[], measured_s);
        }
        self.databases_without_series
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;

    use super::*;

    const INTERVAL_MS: i64 = 1_200_000;

    fn list(names: &[&str]) -> Document {
        let entry = |name: &&str| Bson::Document(doc! { "name": *name });
        doc! { "databases": names.iter().map(entry).collect::<Vec<_>>(), "ok": 1.0 }
    }

    fn stats(size: i32) -> Document {
        doc! { "dataSize": size, "storageSize": i64::from(size) * 2, "indexSize": 1.0, "views": 0 }
    }

    /// Returns the current value of a series of the server or a database.
    fn value_of(sweep: &Sweep, metric: &str, database: Option<&str>) -> Option<f64> {
        let mut readings = Readings::default();
        sweep.push_values(&mut readings);
        let tag_value = |tags: &[(std::borrow::Cow<'static, str>, String)]| {
            tags.iter().map(|(_, value)| value.clone()).next()
        };
        let mut all = readings.as_slice().iter();
        all.find(|r| r.metric == metric && tag_value(&r.tags).as_deref() == database)
            .map(|r| r.value)
    }

    #[test]
    fn a_sweep_continues_in_the_next_round_and_ends_with_sums() {
        let mut sweep = Sweep::default();
        assert!(sweep.is_due(0));
        sweep.start(&list(&["a", "b"]));
        assert_eq!(sweep.next(), Some("a"));
        sweep.note_response(Some(&stats(10)), 1000);
        sweep.end_round(1000, 50, INTERVAL_MS);
        assert!(!sweep.is_due(1000), "the sweep is not complete");
        assert_eq!(value_of(&sweep, "mongodb_db_data_size_total", None), None);
        assert_eq!(value_of(&sweep, "mongodb_database_data_size", Some("a")), Some(10.0));
        assert_eq!(value_of(&sweep, "mongodb_database_data_size", Some("b")), None);
        assert_eq!(sweep.next(), Some("b"));
        sweep.note_response(Some(&stats(30)), 2000);
        sweep.end_round(2000, 50, INTERVAL_MS);
        assert_eq!(value_of(&sweep, "mongodb_db_data_size_total", None), Some(40.0));
        assert_eq!(value_of(&sweep, "mongodb_db_storage_total", None), Some(80.0));
        assert_eq!(value_of(&sweep, "mongodb_logical_size", None), Some(42.0));
        assert_eq!(value_of(&sweep, "mongodb_database_measured", Some("a")), Some(1.0));
        assert_eq!(value_of(&sweep, "mongodb_databases_measured", None), Some(2.0));
        assert!(!sweep.is_due(2000 + INTERVAL_MS - 1));
        assert!(sweep.is_due(2000 + INTERVAL_MS));
    }

    #[test]
    fn the_last_values_remain_until_they_are_replaced_or_removed() {
        let mut sweep = Sweep::default();
        sweep.start(&list(&["a", "b"]));
        sweep.note_response(Some(&stats(10)), 0);
        sweep.note_response(Some(&stats(20)), 0);
        sweep.end_round(0, 5, INTERVAL_MS);
        sweep.start(&list(&["b", "c"]));
        let size = |sweep: &Sweep, name| value_of(sweep, "mongodb_database_data_size", Some(name));
        assert_eq!((size(&sweep, "a"), size(&sweep, "b")), (None, Some(20.0)));
        assert_eq!(value_of(&sweep, "mongodb_db_data_size_total", None), Some(30.0));
        sweep.note_response(Some(&stats(25)), INTERVAL_MS);
        assert_eq!((size(&sweep, "b"), size(&sweep, "c")), (Some(25.0), None));
    }

    #[test]
    fn a_failed_database_leaves_no_sums_and_slow_servers_are_queried_less_often() {
        let mut sweep = Sweep::default();
        sweep.start(&list(&["a", "b"]));
        sweep.note_response(Some(&stats(10)), 0);
        sweep.note_response(None, 0);
        sweep.end_round(0, 60_000, INTERVAL_MS);
        assert_eq!(value_of(&sweep, "mongodb_db_data_size_total", None), None);
        assert!(!sweep.is_due(5_999_999));
        assert!(sweep.is_due(6_000_000), "a hundred times the duration of the sweep");
    }

    #[test]
    fn series_of_databases_are_bounded_and_totals_include_all_databases() {
        let mut sweep = Sweep::default();
        let names: Vec<String> = (0..DATABASES_MAX + 7).map(|index| index.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        sweep.start(&list(&names));
        while sweep.next().is_some() {
            sweep.note_response(Some(&stats(1)), 0);
        }
        sweep.end_round(0, 5, INTERVAL_MS);
        let mut readings = Readings::default();
        assert_eq!(sweep.push_values(&mut readings), 7);
        assert_eq!(value_of(&sweep, "mongodb_db_data_size_total", None), Some(1007.0));
        let found = readings.as_slice().iter().filter(|r| r.metric == "mongodb_database_views");
        assert_eq!(found.count(), 0);
        let found =
            readings.as_slice().iter().filter(|r| r.metric == "mongodb_database_view_count");
        assert_eq!(found.count(), DATABASES_MAX);
        sweep.start(&doc! { "databases": "none" });
        assert_eq!(sweep.next(), None);
    }
}
