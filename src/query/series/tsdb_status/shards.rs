//! The tag values of all shards: each shard sends its values in order, with their numbers of
//! series, and the node that asks adds up equal ones.
//!
//! Must never know: where the shards are.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{StoreStats, ValueCounts, each_value};
use crate::{
    query::{
        ExpressionLimits, QueryError, TSDB_STATUS,
        messages::damaged_answer,
        series::{listing::check_time, selector::CHUNK},
        wire::{count, number, put_count, put_text, take, text},
    },
    store::Store,
};

/// The byte before a tag.
const TAG: u8 = 1;
/// The byte before a value of the last tag.
const VALUE: u8 = 2;
/// The last byte of an answer.
const END: u8 = 0;

/// Returns the values of one shard as bytes, for the node that counts all shards.
///
/// # Errors
/// When the query times out, or its memory is used up.
pub fn tsdb_status_of_shard(
    store: &Store,
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<u8>, QueryError> {
    let StoreStats { series, oldest, latest } = StoreStats::read(store, limits)?;
    let mut out = Vec::new();
    for number in [series as i64, oldest, latest] {
        out.extend(number.to_le_bytes());
    }
    let (mut reserved, mut last) = (0, None::<Box<str>>);
    each_value(store, limits, &mut |tag, value, series| {
        if last.as_deref() != Some(tag) {
            out.push(TAG);
            put_text(tag, &mut out);
            last = Some(tag.into());
        }
        out.push(VALUE);
        put_text(value, &mut out);
        put_count(series as usize, &mut out);
        let grown = out.capacity() - reserved;
        reserved = out.capacity();
        limits.reserve(grown)
    })?;
    out.push(END);
    Ok(out)
}

/// Adds the values of all shards, and returns the statistics of all.
pub(super) fn add_all(
    store: &Store,
    limits: &ExpressionLimits<'_>,
    counts: &mut ValueCounts,
) -> Result<StoreStats, QueryError> {
    let own = || tsdb_status_of_shard(store, limits);
    let answers = limits.budget.ask_shards(TSDB_STATUS, b"", own)?;
    let mut stats = StoreStats { series: 0, oldest: i64::MAX, latest: i64::MIN };
    let (mut parts, mut next) = (Vec::new(), BinaryHeap::new());
    for answer in &answers {
        let mut part = Values { bytes: answer, tag: "" };
        stats = stats.join(part.stats().ok_or_else(damaged_answer)?);
        parts.push(part);
    }
    for (index, part) in parts.iter_mut().enumerate() {
        let first = part.next()?;
        next.extend(first.map(|(tag, value, series)| Reverse((tag, value, index, series))));
    }
    let (mut sum, mut added) = (None::<(&str, &str, u64)>, 0_usize);
    while let Some(Reverse((tag, value, index, series))) = next.pop() {
        if added.is_multiple_of(CHUNK) {
            check_time(limits)?;
        }
        added += 1;
        let following = parts[index].next()?;
        next.extend(following.map(|(tag, value, series)| Reverse((tag, value, index, series))));
        match &mut sum {
            Some((last_tag, last_value, sum)) if (*last_tag, *last_value) == (tag, value) => {
                *sum = sum.saturating_add(series);
            }
            _ => {
                if let Some((tag, value, sum)) = sum.replace((tag, value, series)) {
                    counts.add(tag, value, sum);
                }
            }
        }
    }
    if let Some((tag, value, sum)) = sum {
        counts.add(tag, value, sum);
    }
    Ok(stats)
}

/// The rest of a shard's answer.
struct Values<'a> {
    bytes: &'a [u8],
    /// The tag of the next value.
    tag: &'a str,
}

impl<'a> Values<'a> {
    fn stats(&mut self) -> Option<StoreStats> {
        let series = usize::try_from(number(&mut self.bytes)?).ok()?;
        let (oldest, latest) = (number(&mut self.bytes)?, number(&mut self.bytes)?);
        Some(StoreStats { series, oldest, latest })
    }

    /// Returns the next tag and value with its number of series, or `None` at the end.
    fn next(&mut self) -> Result<Option<(&'a str, &'a str, u64)>, QueryError> {
        if self.bytes == [END] {
            return Ok(None);
        }
        self.value().map(Some).ok_or_else(damaged_answer)
    }

    fn value(&mut self) -> Option<(&'a str, &'a str, u64)> {
        let bytes = &mut self.bytes;
        let [mut kind] = take(bytes)?;
        if kind == TAG {
            self.tag = text(bytes)?;
            [kind] = take(bytes)?;
        }
        let value = (self.tag, text(bytes)?, count(bytes)? as u64);
        Some(value).filter(|_| kind == VALUE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::Kind,
        query::Budget,
        setup::{self, NOW},
    };

    const LIMITS: ExpressionLimits<'_> = ExpressionLimits {
        series_max: 1,
        points_max: 1,
        steps_max: 1,
        query_bytes_max: 1,
        regex_bytes_max: 1,
        budget: &Budget::UNLIMITED,
    };

    /// Reads a whole answer; `None` when it is damaged.
    fn read(answer: &[u8]) -> Option<Vec<(String, String, u64)>> {
        let mut values = Values { bytes: answer, tag: "" };
        values.stats()?;
        let mut all = Vec::new();
        while let Some((tag, value, series)) = values.next().ok()? {
            all.push((tag.to_owned(), value.to_owned(), series));
        }
        Some(all)
    }

    #[test]
    fn the_walk_ends_when_memory_is_used_up() {
        let dir = tempfile::tempdir().unwrap();
        let (store, mut appender) = setup::open(dir.path(), NOW);
        for host in 0..3 * CHUNK {
            let info = setup::series("load", &[("host", &format!("h{host}"))], Kind::Gauge);
            setup::define(&mut appender, &[info], NOW);
        }
        let budget = Budget::of_memory(1000);
        let limits = ExpressionLimits { budget: &budget, ..LIMITS };
        let refused = tsdb_status_of_shard(&store, &limits).unwrap_err();
        assert!(refused.to_string().contains("memory"), "{refused}");
        let mut visited = 0;
        let cause = each_value(&store, &LIMITS, &mut |_, _, _| {
            visited += 1;
            Err(damaged_answer())
        });
        assert!(cause.is_err());
        assert_eq!(visited, 1);
    }

    #[test]
    fn values_come_back_in_order_and_no_prefix_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (store, mut appender) = setup::open(dir.path(), NOW);
        let empty = tsdb_status_of_shard(&store, &LIMITS).unwrap();
        assert_eq!(read(&empty), Some(Vec::new()));
        for host in ["b", "a"] {
            let tags = [("host", host), ("dc", "x")];
            setup::define(&mut appender, &[setup::series("load", &tags, Kind::Gauge)], NOW);
        }
        let answer = tsdb_status_of_shard(&store, &LIMITS).unwrap();
        let found = read(&answer).unwrap();
        let value = |tag: &str, value: &str, series| (tag.to_owned(), value.to_owned(), series);
        let mut expected = vec![value(crate::model::METRIC_TAG, "load", 2), value("dc", "x", 2)];
        expected.extend([value("host", "a", 1), value("host", "b", 1)]);
        expected.sort();
        assert_eq!(found, expected);
        assert!((0..answer.len()).all(|length| read(&answer[..length]).is_none()));
        assert_eq!(read(&[&answer[..], &[END]].concat()), None);
    }
}
