//! The largest metrics and senders by their number of series, and the largest tags by their number
//! of values.
//!
//! Must never know: HTTP, cells. The dictionary is locked for one chunk of values at a time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::selector::CHUNK;
use crate::{
    model::METRIC_TAG,
    query::{Budget, QueryError},
    store::Store,
};

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

/// Counts series by metric and sender, and values by tag; each list has the `count` largest.
///
/// # Errors
/// When the query times out.
pub fn series_counts(
    store: &Store,
    count: usize,
    budget: &Budget,
) -> Result<SeriesCounts, QueryError> {
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
