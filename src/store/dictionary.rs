//! The dictionary: series to id and back, and which series carry a tag.
//!
//! Kept in memory whole; every entry is also a row of the journal's `series` table, written in
//! the transaction that first uses it. Only the appender adds entries.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
    sync::Arc,
};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::model::{Kind, SeriesId, SeriesKey};
use std::hash::BuildHasher;

/// What is known of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesInfo {
    /// Metric and tags.
    pub key: SeriesKey,
    /// How values are to be read.
    pub kind: Kind,
    /// Unit of the values; empty when there is none.
    pub unit: Box<str>,
    /// Who made it known; empty for senders without a name.
    pub sender: Arc<str>,
}

/// Which values of a tag are wanted. The metric's name is the tag [`METRIC_TAG`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matcher {
    /// The tag's name.
    pub tag: String,
    /// The value that it must have.
    pub value: String,
}

/// The name under which matchers see the metric, as in Prometheus.
pub const METRIC_TAG: &str = "__name__";

/// All series of the store.
#[derive(Debug, Default)]
pub struct Dictionary {
    series: Vec<SeriesInfo>,
    by_key: HashTable<SeriesId>,
    hasher: FixedState,
    /// Series that each sender made known.
    by_sender: HashMap<Arc<str>, usize>,
    /// Tag name -> value -> series, ascending.
    postings: BTreeMap<Box<str>, BTreeMap<Box<str>, Vec<SeriesId>>>,
}

impl Dictionary {
    /// Number of series.
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Whether there is no series.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// The series with this key.
    pub fn find(&self, key: &SeriesKey) -> Option<(SeriesId, &SeriesInfo)> {
        let hash = self.hasher.hash_one(key.as_bytes());
        let id = *self.by_key.find(hash, |id| self.series[id.0 as usize].key == *key)?;
        Some((id, &self.series[id.0 as usize]))
    }

    /// What is known of a series.
    pub fn info(&self, id: SeriesId) -> Option<&SeriesInfo> {
        self.series.get(id.0 as usize)
    }

    /// Number of series that a sender made known.
    pub fn count_of_sender(&self, sender: &str) -> usize {
        self.by_sender.get(sender).copied().unwrap_or(0)
    }

    /// Adds a series that is not there yet; its id is the number of series before.
    pub(crate) fn add(&mut self, mut info: SeriesInfo) -> SeriesId {
        let id = SeriesId(self.series.len() as u32);
        info.sender = self.count_sender(&info.sender);
        let tags = std::iter::once((METRIC_TAG, info.key.metric())).chain(info.key.tags());
        for (name, value) in tags {
            if !self.postings.contains_key(name) {
                self.postings.insert(name.into(), BTreeMap::new());
            }
            if let Some(values) = self.postings.get_mut(name) {
                match values.get_mut(value) {
                    Some(ids) => ids.push(id),
                    None => drop(values.insert(value.into(), vec![id])),
                }
            }
        }
        let hash = self.hasher.hash_one(info.key.as_bytes());
        self.series.push(info);
        let (series, hasher) = (&self.series, &self.hasher);
        self.by_key
            .insert_unique(hash, id, |id| hasher.hash_one(series[id.0 as usize].key.as_bytes()));
        id
    }

    /// Counts a sender's series; returns the one copy of its name.
    fn count_sender(&mut self, sender: &Arc<str>) -> Arc<str> {
        if let Some((name, _)) = self.by_sender.get_key_value(sender) {
            let name = name.clone();
            self.by_sender.entry(name.clone()).and_modify(|count| *count += 1);
            return name;
        }
        self.by_sender.insert(sender.clone(), 1);
        sender.clone()
    }

    /// Series with this value of a tag, ascending.
    pub fn with_tag(&self, tag: &str, value: &str) -> &[SeriesId] {
        let found = self.postings.get(tag).and_then(|values| values.get(value));
        found.map_or(&[], Vec::as_slice)
    }

    /// The next values of a tag after one of them, ascending, at most `count`.
    pub fn values_after(&self, tag: &str, after: Option<&str>, count: usize) -> Vec<Box<str>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let values = self.postings.get(tag).into_iter();
        let next = values.flat_map(|values| values.range::<str, _>((from, Bound::Unbounded)));
        next.take(count).map(|(value, _)| value.clone()).collect()
    }

    /// The names of all tags, ascending; [`METRIC_TAG`] is one of them.
    pub fn tag_names(&self) -> Vec<Box<str>> {
        self.postings.keys().cloned().collect()
    }

    /// Series that match all matchers, ascending; all series when there is none.
    pub fn select(&self, matchers: &[Matcher]) -> Vec<SeriesId> {
        let mut lists = Vec::with_capacity(matchers.len());
        for matcher in matchers {
            let values = self.postings.get(matcher.tag.as_str());
            match values.and_then(|values| values.get(matcher.value.as_str())) {
                Some(ids) => lists.push(ids),
                None => return Vec::new(),
            }
        }
        lists.sort_by_key(|ids| ids.len());
        let Some((shortest, others)) = lists.split_first() else {
            return (0..self.series.len() as u32).map(SeriesId).collect();
        };
        let in_all = |id: &&SeriesId| others.iter().all(|ids| ids.binary_search(id).is_ok());
        shortest.iter().filter(in_all).copied().collect()
    }
}

/// The bytes of a series' row; FORMAT.md describes them.
pub(crate) fn encode_series(info: &SeriesInfo) -> Vec<u8> {
    let mut row = vec![info.kind.code()];
    for text in [&*info.unit, &*info.sender] {
        row.extend_from_slice(&(text.len() as u16).to_le_bytes());
        row.extend_from_slice(text.as_bytes());
    }
    row.extend_from_slice(info.key.as_bytes());
    row
}

/// Reads a series' row; `None` when it is damaged.
pub(crate) fn decode_series(row: &[u8]) -> Option<SeriesInfo> {
    let (kind, rest) = row.split_first()?;
    let (unit, rest) = decode_text(rest)?;
    let (sender, key) = decode_text(rest)?;
    Some(SeriesInfo {
        kind: Kind::from_code(*kind)?,
        unit: unit.into(),
        sender: sender.into(),
        key: SeriesKey::from_bytes(key)?,
    })
}

fn decode_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SeriesLimits;

    fn info(metric: &str, tags: &[(&str, &str)]) -> SeriesInfo {
        let key = SeriesKey::new(metric, tags.iter().copied(), &SeriesLimits::default()).unwrap();
        SeriesInfo { key, kind: Kind::Counter, unit: "bytes".into(), sender: "a".into() }
    }

    #[test]
    fn series_are_found_by_key_and_by_tags() {
        let mut dictionary = Dictionary::default();
        let all = [
            info("cpu", &[("host", "a"), ("core", "0")]),
            info("cpu", &[("host", "b"), ("core", "0")]),
            info("mem", &[("host", "a")]),
        ];
        for (index, series) in all.iter().enumerate() {
            assert_eq!(dictionary.add(series.clone()), SeriesId(index as u32));
        }
        for (index, series) in all.iter().enumerate() {
            let found = dictionary.find(&series.key).unwrap();
            assert_eq!(found, (SeriesId(index as u32), series));
            assert_eq!(decode_series(&encode_series(series)).as_ref(), Some(series));
        }
        let check = |matchers: &[(&str, &str)], expected: &[u32]| {
            let matchers: Vec<_> = matchers
                .iter()
                .map(|(tag, value)| Matcher { tag: (*tag).into(), value: (*value).into() })
                .collect();
            let found: Vec<_> = dictionary.select(&matchers).iter().map(|id| id.0).collect();
            assert_eq!(found, expected, "{matchers:?}");
        };
        check(&[], &[0, 1, 2]);
        check(&[("host", "a")], &[0, 2]);
        check(&[(METRIC_TAG, "cpu"), ("host", "a")], &[0]);
        check(&[("host", "c")], &[]);
        check(&[("zone", "a")], &[]);
        assert_eq!(dictionary.with_tag("host", "a"), [SeriesId(0), SeriesId(2)]);
        assert_eq!(dictionary.values_after("host", None, 1), ["a".into()]);
        assert_eq!(dictionary.values_after("host", Some("a"), 9), ["b".into()]);
        assert_eq!(dictionary.tag_names(), [METRIC_TAG.into(), "core".into(), "host".into()]);
        assert_eq!([dictionary.count_of_sender("a"), dictionary.count_of_sender("b")], [3, 0]);
    }
}
