//! The metrics, tags and tag values with the most series, as in Prometheus' `status/tsdb`.
//!
//! Must never know: HTTP, cells. The dictionary is locked for one chunk of values at a time.

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

/// Counts series, tag values and bytes; each list contains the `count` largest entries.
///
/// # Errors
/// When the query times out, or its memory is used up.
pub fn cardinality(
    store: &Store,
    count: usize,
    limits: &ExpressionLimits<'_>,
) -> Result<Cardinality, QueryError> {
    let [mut metrics, mut values, mut bytes, mut pairs] =
        [(); 4].map(|()| LargestCounts::new(count));
    let mut label_pairs = 0;
    for tag in store.dictionary().tag_names() {
        let (mut value_count, mut value_bytes) = (0, 0);
        let mut after: Option<Box<str>> = None;
        loop {
            check_time(limits)?;
            let dictionary = store.dictionary();
            let next = dictionary.values_after(&tag, after.as_deref(), CHUNK);
            for value in &next {
                let series = dictionary.with_tag(&tag, value).len() as u64;
                value_count += 1;
                value_bytes += value.len() as u64 * series;
                if *tag == *METRIC_TAG {
                    metrics.add(series, || value.to_string());
                }
                pairs.add(series, || format!("{tag}={value}"));
            }
            let Some(last) = next.into_iter().next_back() else { break };
            after = Some(last);
        }
        label_pairs += value_count;
        values.add(value_count, || tag.to_string());
        bytes.add(value_bytes, || tag.to_string());
    }
    let partitions = store.partitions();
    let oldest = partitions.iter().map(|partition| partition.id.start).min();
    // Without samples, the times equal the times that Prometheus reports for an empty head.
    let latest = latest_sample(store, limits)?;
    let oldest = oldest.or(latest).unwrap_or(UnixMillis(i64::MAX));
    Ok(Cardinality {
        head_stats: HeadStats {
            num_series: store.dictionary().len(),
            num_label_pairs: label_pairs,
            chunk_count: 0,
            min_time: oldest.0,
            max_time: latest.unwrap_or(UnixMillis(i64::MIN)).0,
        },
        series_count_by_metric_name: metrics.into_sorted(),
        label_value_count_by_label_name: values.into_sorted(),
        memory_in_bytes_by_label_name: bytes.into_sorted(),
        series_count_by_label_value_pair: pairs.into_sorted(),
    })
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
