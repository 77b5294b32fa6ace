//! The largest metrics and senders by their number of series, and the largest tags by their number
//! of values.
//!
//! Must never know: HTTP, cells. The dictionary is locked for one chunk of values at a time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::selector::CHUNK;
use crate::{
    model::METRIC_TAG,
    query::{
        Budget, QueryError, SERIES_COUNTS,
        messages::{read_answer, written},
    },
    store::Store,
};

/// The approximate memory of a counted name, without its text.
const NAME_BYTES: usize = 64;

/// The largest numbers of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesCounts {
    /// The number of series.
    pub series: u64,
    /// The number of series of each metric.
    pub metrics: BTreeMap<String, u64>,
    /// The number of values of each tag.
    pub tags: BTreeMap<String, u64>,
    /// The number of series that each sender registered.
    pub senders: BTreeMap<String, u64>,
}

/// The hashes of the values of each tag.
type ValueHashes = BTreeMap<String, Vec<u64>>;

/// Counts series by metric and sender, and values by tag, in all shards; each list has the `count`
/// largest. A series of two shards is counted in both.
///
/// # Errors
/// When the query times out, or a shard does not answer.
pub fn series_counts(
    store: &Store,
    count: usize,
    budget: &Budget,
) -> Result<SeriesCounts, QueryError> {
    if budget.others().is_none() {
        return counts_here(store, count, budget);
    }
    let own = || counts_and_values(store, budget);
    let ((mut whole, mut values), answers) = budget.beside_shards(SERIES_COUNTS, b"", own)?;
    for answer in answers {
        let (other, other_values): (SeriesCounts, ValueHashes) = read_answer(&answer, budget)?;
        whole.series += other.series;
        for (into, from) in
            [(&mut whole.metrics, other.metrics), (&mut whole.senders, other.senders)]
        {
            for (name, series) in from {
                *into.entry(name).or_default() += series;
            }
        }
        for (tag, hashes) in other_values {
            values.entry(tag).or_default().extend(hashes);
        }
    }
    for (tag, mut hashes) in values {
        budget.check()?;
        hashes.sort_unstable();
        hashes.dedup();
        whole.tags.insert(tag, hashes.len() as u64);
    }
    for all in [&mut whole.metrics, &mut whole.tags, &mut whole.senders] {
        keep_largest(all, count);
    }
    Ok(whole)
}

/// Returns the counts of one shard as bytes, for the node that counts all shards.
///
/// # Errors
/// When the query times out, or its memory is used up.
pub fn series_counts_of_shard(store: &Store, budget: &Budget) -> Result<Vec<u8>, QueryError> {
    let counted = counts_and_values(store, budget)?;
    let out = written(&counted)?;
    budget.reserve(out.capacity())?;
    Ok(out)
}

/// Counts all metrics and senders of this shard, and lists the values of each tag.
fn counts_and_values(
    store: &Store,
    budget: &Budget,
) -> Result<(SeriesCounts, ValueHashes), QueryError> {
    let mut counts = counts_here(store, usize::MAX, budget)?;
    let names = counts.metrics.keys().chain(counts.senders.keys());
    budget.reserve(names.map(|name| name.len() + NAME_BYTES).sum())?;
    let mut all = ValueHashes::new();
    for tag in std::mem::take(&mut counts.tags).into_keys() {
        let (mut hashes, mut after) = (Vec::new(), None::<Box<str>>);
        loop {
            budget.check()?;
            budget.reserve(CHUNK * size_of::<u64>())?;
            let dictionary = store.dictionary();
            after = dictionary.visit_values(&tag, after.as_deref(), CHUNK, |value| {
                hashes.push(xxh3_64(value.as_bytes()));
            });
            if after.is_none() {
                break;
            }
        }
        all.insert(tag, hashes);
    }
    Ok((counts, all))
}

/// Counts series by metric and sender, and values by tag, in this shard; each list has the `count`
/// largest.
fn counts_here(store: &Store, count: usize, budget: &Budget) -> Result<SeriesCounts, QueryError> {
    let (mut metrics, mut tags) = (BTreeMap::new(), BTreeMap::new());
    for tag in store.dictionary().tag_names() {
        let (mut values, mut after) = (0, None::<Box<str>>);
        loop {
            budget.check()?;
            let dictionary = store.dictionary();
            after = dictionary.visit_values(&tag, after.as_deref(), CHUNK, |value| {
                values += 1;
                if *tag == *METRIC_TAG {
                    let series = dictionary.with_tag(&tag, value).len() as u64;
                    metrics.insert(value.to_owned(), series);
                }
            });
            drop(dictionary);
            keep_largest(&mut metrics, count);
            if after.is_none() {
                break;
            }
        }
        if *tag != *METRIC_TAG {
            tags.insert(tag.to_string(), values);
        }
    }
    keep_largest(&mut tags, count);
    let dictionary = store.dictionary();
    let senders = dictionary.largest_senders(count).into_iter();
    Ok(SeriesCounts {
        series: dictionary.len() as u64,
        metrics,
        tags,
        senders: senders.map(|(name, series)| (name.to_string(), series as u64)).collect(),
    })
}

/// Removes all but the `count` largest entries; among equal ones, the first names stay.
fn keep_largest(all: &mut BTreeMap<String, u64>, count: usize) {
    if all.len() <= count {
        return;
    }
    let mut sorted: Vec<_> = std::mem::take(all).into_iter().collect();
    sorted.sort_by_key(|entry| std::cmp::Reverse(entry.1));
    sorted.truncate(count);
    all.extend(sorted);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_entries_stay() {
        let mut all: BTreeMap<_, _> =
            [("a", 1), ("b", 3), ("c", 2), ("d", 2)].map(|(name, n)| (name.to_owned(), n)).into();
        keep_largest(&mut all, 2);
        let kept: Vec<_> = all.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(kept, [("b", 3), ("c", 2)]);
    }
}
