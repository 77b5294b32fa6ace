//! The cardinality of the store at the start of the day, for comparison with the current
//! cardinality.
//!
//! Must never know: HTTP, how series are counted.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{Records, fault_of, records::Record};
use crate::{
    model::UnixMillis,
    query::{Budget, QueryError, SeriesCounts, series_counts},
    store::{ObjectKind, Store},
};

/// The number of metrics, tags and senders that are stored for each day.
const STORED_MAX: usize = 1000;
/// The names of the stored counts of today and of yesterday.
const NAMES: [&str; 2] = ["today", "yesterday"];
const DAY_MS: i64 = 86_400_000;

/// Counts at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DatedCounts {
    /// The time in Unix milliseconds.
    at: i64,
    counts: SeriesCounts,
}

impl Record for DatedCounts {}

/// The counts at the start of today and of yesterday, in UTC. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct KnownCardinality(Arc<Mutex<DailyCounts>>);

#[derive(Debug, Default)]
struct DailyCounts {
    is_loaded: bool,
    today: Option<DatedCounts>,
    yesterday: Option<DatedCounts>,
}

/// A name with its current and its earlier number of series or values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedName {
    /// The metric, the tag or the sender.
    pub name: String,
    /// The current number.
    pub count: u64,
    /// The earlier number; `None` when it is unknown.
    pub before: Option<u64>,
}

/// The largest metrics, tags and senders, each with the earlier number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardinalityAnswer {
    /// The earlier time in Unix milliseconds; `None` while the daemon has no earlier counts.
    pub since: Option<i64>,
    /// All series.
    pub series: CountedName,
    /// Series by metric.
    pub metrics: Vec<CountedName>,
    /// Values by tag.
    pub tags: Vec<CountedName>,
    /// Series by the sender that registered them.
    pub senders: Vec<CountedName>,
}

impl KnownCardinality {
    /// Counts and stores the series once a day.
    ///
    /// # Errors
    /// The counts cannot be read or stored; the next call retries.
    pub fn store_daily(&self, store: &Store, now: UnixMillis) -> Result<(), String> {
        let records = Records::<DatedCounts>::new(store, ObjectKind::Cardinality);
        let mut days = self.0.lock();
        if !days.is_loaded {
            let [today, yesterday] = NAMES;
            (days.today, days.yesterday) = (records.get(today)?, records.get(yesterday)?);
            days.is_loaded = true;
        }
        let day = |at: i64| at.div_euclid(DAY_MS);
        if days.today.as_ref().is_some_and(|counts| day(counts.at) >= day(now.0)) {
            return Ok(());
        }
        let counts = series_counts(store, STORED_MAX, &Budget::UNLIMITED);
        let counts = counts.map_err(|cause| cause.to_string())?;
        let yesterday = days.today.replace(DatedCounts { at: now.0, counts });
        days.yesterday = yesterday.or(days.yesterday.take());
        for (name, counts) in NAMES.iter().zip([&days.today, &days.yesterday]) {
            let Some(counts) = counts else { continue };
            if let Some(fault) = fault_of(records.put(name, counts, now)) {
                return Err(fault);
            }
        }
        Ok(())
    }

    /// Returns the `count` largest metrics, tags and senders, compared with the start of yesterday,
    /// or with the start of today when nothing older is known.
    ///
    /// # Errors
    /// When the query times out.
    pub fn answer(
        &self,
        store: &Store,
        count: usize,
        budget: &Budget,
    ) -> Result<CardinalityAnswer, QueryError> {
        let now = series_counts(store, count, budget)?;
        let days = self.0.lock();
        // The earlier counts of a store with several shards are those of the first shard.
        let before = days.yesterday.as_ref().or(days.today.as_ref());
        let before = before.filter(|_| budget.others().is_none());
        let compare = |now: BTreeMap<String, u64>,
                       part: fn(&SeriesCounts) -> &BTreeMap<String, u64>| {
            let earlier = |name: &str| {
                let known = part(&before?.counts);
                // In a complete list, the count of a missing name was 0.
                known.get(name).copied().or((known.len() < STORED_MAX).then_some(0))
            };
            let counted =
                |(name, count): (String, u64)| CountedName { before: earlier(&name), name, count };
            let mut all: Vec<_> = now.into_iter().map(counted).collect();
            all.sort_by_key(|entry| std::cmp::Reverse(entry.count));
            all
        };
        let series_before = before.map(|before| before.counts.series);
        Ok(CardinalityAnswer {
            since: before.map(|before| before.at),
            series: CountedName {
                name: "series".to_owned(),
                count: now.series,
                before: series_before,
            },
            metrics: compare(now.metrics, |counts| &counts.metrics),
            tags: compare(now.tags, |counts| &counts.tags),
            senders: compare(now.senders, |counts| &counts.senders),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::Kind,
        setup::{NOW, define, open, series},
    };

    #[test]
    fn numbers_are_compared_with_the_day_before_also_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let (store, mut appender) = open(dir.path(), NOW);
        let known = KnownCardinality::default();
        let answer =
            |known: &KnownCardinality| known.answer(&store, 9, &Budget::UNLIMITED).unwrap();
        let mut add = |metric: &str, host: &str| {
            define(&mut appender, &[series(metric, &[("host", host)], Kind::Gauge)], NOW);
        };
        add("load", "a");
        assert_eq!((answer(&known).since, answer(&known).metrics[0].before), (None, None));
        known.store_daily(&store, NOW).unwrap();
        add("load", "b");
        add("free", "a");
        known.store_daily(&store, NOW.plus(DAY_MS)).unwrap();
        add("load", "c");
        for known in [known, KnownCardinality::default()] {
            known.store_daily(&store, NOW.plus(DAY_MS)).unwrap();
            let answer = answer(&known);
            assert_eq!(answer.since, Some(NOW.0));
            assert_eq!((answer.series.count, answer.series.before), (4, Some(1)));
            let counted = |name: &str, count, before| CountedName {
                name: name.to_owned(),
                count,
                before: Some(before),
            };
            assert_eq!(answer.metrics, [counted("load", 3, 1), counted("free", 1, 0)]);
            assert_eq!(answer.tags, [counted("host", 3, 1)]);
            assert_eq!(answer.senders.len(), 1);
        }
    }
}
