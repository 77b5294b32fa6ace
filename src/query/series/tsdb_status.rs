//! The metrics, tags and tag values with the most series, as in Prometheus' `status/tsdb`.
//!
//! Must never know: HTTP, cells. The dictionary is locked for one chunk of values at a time.

mod shards;

pub use shards::tsdb_status_of_shard;

use std::{cmp::Reverse, collections::BinaryHeap};

use serde::Serialize;

use crate::{
    model::{METRIC_TAG, SeriesId, UnixMillis},
    query::{ExpressionLimits, QueryError, series::listing::check_time, series::selector::CHUNK},
    store::Store,
};

/// Cardinality statistics in Prometheus' format.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cardinality {
    head_stats: HeadStats,
    series_count_by_metric_name: Vec<NamedCount>,
    label_value_count_by_label_name: Vec<NamedCount>,
    memory_in_bytes_by_label_name: Vec<NamedCount>,
    series_count_by_label_value_pair: Vec<NamedCount>,
}

/// Statistics over all series.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HeadStats {
    num_series: usize,
    num_label_pairs: u64,
    /// Granary has no chunks: always 0.
    chunk_count: u64,
    min_time: i64,
    max_time: i64,
}

/// A name and its count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct NamedCount {
    name: String,
    value: u64,
}

/// The entries with the largest counts.
#[derive(Debug)]
struct LargestCounts {
    count: usize,
    /// The smallest count on top; among equal counts, the name that sorts last.
    heap: BinaryHeap<Reverse<(u64, Reverse<String>)>>,
}

impl LargestCounts {
    fn new(count: usize) -> Self {
        Self { count, heap: BinaryHeap::new() }
    }

    fn add(&mut self, value: u64, name: impl FnOnce() -> String) {
        let is_beaten = self.heap.len() >= self.count
            && self.heap.peek().is_some_and(|smallest| smallest.0.0 > value);
        if is_beaten || self.count == 0 {
            return;
        }
        self.heap.push(Reverse((value, Reverse(name()))));
        if self.heap.len() > self.count {
            self.heap.pop();
        }
    }

    fn into_sorted(self) -> Vec<NamedCount> {
        let ascending = self.heap.into_sorted_vec().into_iter();
        ascending.map(|Reverse((value, Reverse(name)))| NamedCount { name, value }).collect()
    }
}

/// The number of series and the times of a store.
#[derive(Debug, Clone, Copy)]
struct StoreStats {
    series: usize,
    /// The start of the oldest partition; `i64::MAX` without partitions.
    oldest: i64,
    /// The time of the latest sample; `i64::MIN` without samples.
    latest: i64,
}

impl StoreStats {
    fn read(store: &Store, limits: &ExpressionLimits<'_>) -> Result<Self, QueryError> {
        let partitions = store.partitions();
        let oldest = partitions.iter().map(|partition| partition.id.start.0).min();
        let latest = latest_sample(store, limits)?.map(|latest| latest.0);
        let series = store.dictionary().len();
        Ok(Self { series, oldest: oldest.unwrap_or(i64::MAX), latest: latest.unwrap_or(i64::MIN) })
    }

    /// Returns the statistics of both stores. A series of both is counted twice.
    fn join(self, other: Self) -> Self {
        Self {
            series: self.series.saturating_add(other.series),
            oldest: self.oldest.min(other.oldest),
            latest: self.latest.max(other.latest),
        }
    }
}

/// The largest counts of the values that were added.
#[derive(Debug)]
struct ValueCounts {
    metrics: LargestCounts,
    values: LargestCounts,
    bytes: LargestCounts,
    pairs: LargestCounts,
    label_pairs: u64,
    /// The tag whose values are added, with their number and bytes.
    tag: Option<(Box<str>, u64, u64)>,
}

impl ValueCounts {
    fn new(count: usize) -> Self {
        let [metrics, values, bytes, pairs] = [(); 4].map(|()| LargestCounts::new(count));
        Self { metrics, values, bytes, pairs, label_pairs: 0, tag: None }
    }

    /// Adds a value with its number of series. The values of a tag follow each other.
    fn add(&mut self, tag: &str, value: &str, series: u64) {
        if self.tag.as_ref().is_none_or(|(current, ..)| **current != *tag) {
            self.end_tag();
            self.tag = Some((tag.into(), 0, 0));
        }
        if let Some((_, values, bytes)) = &mut self.tag {
            *values += 1;
            *bytes = bytes.saturating_add((value.len() as u64).saturating_mul(series));
        }
        if *tag == *METRIC_TAG {
            self.metrics.add(series, || value.to_owned());
        }
        self.pairs.add(series, || format!("{tag}={value}"));
    }

    fn end_tag(&mut self) {
        if let Some((tag, values, bytes)) = self.tag.take() {
            self.label_pairs += values;
            self.values.add(values, || tag.to_string());
            self.bytes.add(bytes, || tag.to_string());
        }
    }

    fn into_report(mut self, stats: StoreStats) -> Cardinality {
        self.end_tag();
        // Without samples, the times equal the times that Prometheus reports for an empty head.
        let oldest = match stats {
            StoreStats { oldest: i64::MAX, latest, .. } if latest > i64::MIN => latest,
            StoreStats { oldest, .. } => oldest,
        };
        Cardinality {
            head_stats: HeadStats {
                num_series: stats.series,
                num_label_pairs: self.label_pairs,
                chunk_count: 0,
                min_time: oldest,
                max_time: stats.latest,
            },
            series_count_by_metric_name: self.metrics.into_sorted(),
            label_value_count_by_label_name: self.values.into_sorted(),
            memory_in_bytes_by_label_name: self.bytes.into_sorted(),
            series_count_by_label_value_pair: self.pairs.into_sorted(),
        }
    }
}

/// Counts series, tag values and bytes in all shards; each list contains the `count` largest
/// entries. A series of two shards is counted in both.
///
/// # Errors
/// When the query times out, its memory is used up, or a shard does not answer.
pub fn cardinality(
    store: &Store,
    count: usize,
    limits: &ExpressionLimits<'_>,
) -> Result<Cardinality, QueryError> {
    let mut counts = ValueCounts::new(count);
    let stats = if limits.budget.others().is_some() {
        shards::add_all(store, limits, &mut counts)?
    } else {
        each_value(store, limits, &mut |tag, value, series| {
            counts.add(tag, value, series);
            Ok(())
        })?;
        StoreStats::read(store, limits)?
    };
    Ok(counts.into_report(stats))
}

/// Calls `visit` with each tag and value in order, and the number of series that have it, until it
/// returns an error.
fn each_value(
    store: &Store,
    limits: &ExpressionLimits<'_>,
    visit: &mut dyn FnMut(&str, &str, u64) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    for tag in store.dictionary().tag_names() {
        let mut after: Option<Box<str>> = None;
        loop {
            check_time(limits)?;
            let dictionary = store.dictionary();
            let mut visited = Ok(());
            after = dictionary.visit_values(&tag, after.as_deref(), CHUNK, |value| {
                if visited.is_ok() {
                    visited = visit(&tag, value, dictionary.with_tag(&tag, value).len() as u64);
                }
            });
            visited?;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(())
}

fn latest_sample(
    store: &Store,
    limits: &ExpressionLimits<'_>,
) -> Result<Option<UnixMillis>, QueryError> {
    let ids = store.dictionary().id_count() as u32;
    let mut latest = None;
    for first in (0..ids).step_by(CHUNK) {
        check_time(limits)?;
        let part: Vec<_> = (first..ids.min(first + CHUNK as u32)).map(SeriesId).collect();
        let last = store.last_samples(&part).into_iter().flatten().map(|sample| sample.at).max();
        latest = latest.max(last);
    }
    Ok(latest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_counts_come_first_and_equal_counts_are_sorted_by_name() {
        let mut largest = LargestCounts::new(3);
        for (value, name) in [(1, "z"), (5, "b"), (5, "a"), (9, "c"), (5, "d"), (2, "e")] {
            largest.add(value, || name.to_owned());
        }
        let names: Vec<_> =
            largest.into_sorted().into_iter().map(|count| (count.name, count.value)).collect();
        let expected = [("c", 9), ("a", 5), ("b", 5)].map(|(name, value)| (name.to_owned(), value));
        assert_eq!(names, expected);
        let mut none = LargestCounts::new(0);
        none.add(1, || "a".to_owned());
        assert_eq!(none.into_sorted(), []);
    }
}
