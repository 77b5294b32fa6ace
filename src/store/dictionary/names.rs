//! The names of one project: which series has a key, and which series carry a tag.
//!
//! Must never know: other projects, and the definitions of series.

use std::{collections::BTreeMap, ops::Bound};

use hashbrown::HashTable;

use super::{Matcher, VALUE_BYTES, key_bytes, pairs};
use crate::model::{METRIC_TAG, SeriesId, SeriesKey};

/// Tag name -> value -> series, ascending.
pub(super) type Postings = BTreeMap<Box<str>, BTreeMap<Box<str>, Vec<SeriesId>>>;

/// The names of the series of one project.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The series by the hashes of their keys.
    pub(super) by_key: HashTable<SeriesId>,
    pub(super) postings: Postings,
    /// Bytes of keys.
    pub(super) key_bytes: usize,
    /// Approximate bytes of the postings.
    pub(super) index_bytes: usize,
}

impl Names {
    /// Adds the newest series to the lists of its tags.
    pub(super) fn add_tags(&mut self, key: &SeriesKey, id: SeriesId) {
        self.key_bytes += key_bytes(key);
        for (name, value) in pairs(key) {
            if !self.postings.contains_key(name) {
                self.postings.insert(name.into(), BTreeMap::new());
            }
            if let Some(values) = self.postings.get_mut(name) {
                if let Some(ids) = values.get_mut(value) {
                    let room = ids.capacity();
                    ids.push(id);
                    self.index_bytes += (ids.capacity() - room) * size_of::<SeriesId>();
                } else {
                    values.insert(value.into(), vec![id]);
                    self.index_bytes += VALUE_BYTES + value.len() + size_of::<SeriesId>();
                }
            }
        }
    }

    /// Returns the series with this value of a tag, ascending.
    pub(super) fn with_tag(&self, tag: &str, value: &str) -> &[SeriesId] {
        let found = self.postings.get(tag).and_then(|values| values.get(value));
        found.map_or(&[], Vec::as_slice)
    }

    /// Returns the values of a tag that follow `after`, ascending.
    pub(super) fn range_after(
        &self,
        tag: &str,
        after: Option<&str>,
    ) -> impl Iterator<Item = &Box<str>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let values = self.postings.get(tag).into_iter();
        let next = values.map(move |values| values.range::<str, _>((from, Bound::Unbounded)));
        next.flatten().map(|(value, _)| value)
    }

    /// Returns all series of the project, ascending: each has a metric.
    pub(super) fn all(&self) -> Vec<SeriesId> {
        let by_metric = self.postings.get(METRIC_TAG).into_iter().flat_map(BTreeMap::values);
        let mut all: Vec<_> = by_metric.flatten().copied().collect();
        all.sort_unstable();
        all
    }

    /// Returns the series that match all matchers, ascending; `None` when there is no matcher.
    pub(super) fn select(&self, matchers: &[Matcher]) -> Option<Vec<SeriesId>> {
        let mut lists = Vec::with_capacity(matchers.len());
        for matcher in matchers {
            let values = self.postings.get(matcher.tag.as_str());
            match values.and_then(|values| values.get(matcher.value.as_str())) {
                Some(ids) => lists.push(ids),
                None => return Some(Vec::new()),
            }
        }
        lists.sort_by_key(|ids| ids.len());
        let (shortest, others) = lists.split_first()?;
        let in_all = |id: &&SeriesId| others.iter().all(|ids| ids.binary_search(id).is_ok());
        Some(shortest.iter().filter(in_all).copied().collect())
    }
}
