//! The dictionary: series to id and back, and which series carry a tag.
//!
//! The dictionary is in memory as a whole; every entry is also in the journal's `series` table,
//! written by the transaction that first uses it. Only the appender adds and changes entries. An id
//! stands for the same series for ever: the id of a deleted series is not reused.
//!
//! Must never know: samples, and the files.

pub(crate) mod changes;
pub(crate) mod filling;
mod pool;
mod update;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    hash::BuildHasher,
    ops::Bound,
    sync::Arc,
};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::model::{Kind, METRIC_TAG, SeriesId, SeriesInfo, SeriesKey};
use pool::Pool;

/// A condition that a tag has a value. The metric's name is the tag [`METRIC_TAG`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matcher {
    /// The tag's name.
    pub tag: String,
    /// The value that the tag must have.
    pub value: String,
}

/// The dictionary's entry of an id.
#[derive(Debug)]
struct Entry {
    /// `None` when the series was deleted.
    key: Option<SeriesKey>,
    /// Place of the kind and the unit; the unit of a deleted series is empty.
    measure: u32,
    /// Place of the sender; `u32::MAX` for a deleted series.
    sender: u32,
}

const _: () = assert!(size_of::<Entry>() == 24);

/// The kind of the values, and their unit.
type Measure = (Kind, Arc<str>);

/// Tag name -> value -> series, ascending.
type Postings = BTreeMap<Box<str>, BTreeMap<Box<str>, Vec<SeriesId>>>;

/// All series of the store.
#[derive(Debug, Default)]
pub struct Dictionary {
    /// Entries by id.
    series: Vec<Entry>,
    deleted: usize,
    /// The number of changes of known series.
    generation: u64,
    /// The generation in which a series was renamed last, since the start.
    renamed: HashMap<SeriesId, u64>,
    /// The parts of each series that has parts, ascending.
    parts: HashMap<SeriesId, Vec<SeriesId>>,
    /// The series that each part belongs to.
    wholes: HashMap<SeriesId, SeriesId>,
    by_key: HashTable<SeriesId>,
    /// Seeded at random: senders choose the keys.
    hasher: RandomState,
    measures: Pool<Measure>,
    /// The senders that defined series.
    senders: Pool<Arc<str>>,
    postings: Postings,
    /// Bytes of keys.
    key_bytes: usize,
    /// Approximate bytes of the postings.
    index_bytes: usize,
}

/// Bytes that a value of a tag takes in the postings besides its text: the nodes of a tree are
/// filled by two thirds.
const VALUE_BYTES: usize = (size_of::<Box<str>>() + size_of::<Vec<SeriesId>>()) * 3 / 2;
/// Bytes that a key takes besides its text: two reference counters, and the average rounding of an
/// allocation.
const KEY_BYTES: usize = 16 + 8;

impl Dictionary {
    /// The approximate bytes of the series, and of the index of their tags.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let entries = size_of_val(&self.series[..]) + self.by_key.allocation_size();
        (entries + self.key_bytes, self.index_bytes)
    }

    /// Number of series; deleted ones do not count.
    pub fn len(&self) -> usize {
        self.series.len() - self.deleted
    }

    /// Returns whether there is no series.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of ids that were ever assigned: the id of the next new series.
    pub fn id_count(&self) -> usize {
        self.series.len()
    }

    /// The number of changes of known series: after deleting or renaming, earlier results may be
    /// out of date.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns whether an id that was found for a key in `generation` still stands for that key.
    pub fn is_current(&self, id: SeriesId, generation: u64) -> bool {
        let renamed = self.renamed.get(&id).copied().unwrap_or(0);
        self.key(id).is_some() && renamed <= generation
    }

    /// The series with this key.
    pub fn find(&self, key: &SeriesKey) -> Option<SeriesId> {
        let hash = self.hasher.hash_one(key.as_bytes());
        self.by_key.find(hash, |id| self.key(*id) == Some(key)).copied()
    }

    /// The key of a series; `None` when it was deleted.
    pub fn key(&self, id: SeriesId) -> Option<&SeriesKey> {
        self.series.get(id.0 as usize)?.key.as_ref()
    }

    /// The definition of a series; `None` when it was deleted.
    pub fn info(&self, id: SeriesId) -> Option<SeriesInfo> {
        let entry = self.series.get(id.0 as usize)?;
        let key = entry.key.clone()?;
        let (kind, unit) = self.measures.get(entry.measure).clone();
        Some(SeriesInfo { key, kind, unit, sender: self.senders.get(entry.sender).clone() })
    }

    /// The kind of a series, also when it was deleted.
    pub fn kind(&self, id: SeriesId) -> Option<Kind> {
        self.series.get(id.0 as usize).map(|entry| self.measures.get(entry.measure).0)
    }

    /// Returns the parts of a series, ascending: the series that were merged into it, and the
    /// series of other kinds that it replaced.
    pub fn parts(&self, id: SeriesId) -> &[SeriesId] {
        self.parts.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Returns true when a part of a series has another kind.
    pub fn has_parts_of_another_kind(&self, id: SeriesId) -> bool {
        let kind = self.kind(id);
        self.parts(id).iter().any(|part| self.kind(*part) != kind)
    }

    /// Returns the series that a part belongs to.
    pub fn whole_of(&self, part: SeriesId) -> Option<SeriesId> {
        self.wholes.get(&part).copied()
    }

    /// Returns whether any series has parts.
    pub fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Number of series that a sender defined.
    pub fn count_of_sender(&self, sender: &str) -> usize {
        self.senders.user_count(sender)
    }

    /// Number of senders with series that are not deleted.
    pub fn sender_count(&self) -> usize {
        self.senders.len()
    }

    /// The senders that defined most series, with their numbers of series, the largest first.
    pub fn largest_senders(&self, count: usize) -> Vec<(Arc<str>, usize)> {
        let mut all: Vec<_> =
            self.senders.iter().map(|(name, series)| (Reverse(series), name)).collect();
        if all.len() > count {
            all.select_nth_unstable(count);
            all.truncate(count);
        }
        all.sort_unstable();
        all.into_iter().map(|(Reverse(series), name)| (name.clone(), series)).collect()
    }

    /// Adds a series that does not exist yet; its id is the number of ids assigned before.
    pub fn add(&mut self, info: SeriesInfo) -> SeriesId {
        let id = SeriesId(self.series.len() as u32);
        self.key_bytes += key_bytes(&info.key);
        for (name, value) in pairs(&info.key) {
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
        self.series.push(Entry {
            key: Some(info.key),
            measure: self.measures.add_user((info.kind, info.unit)),
            sender: self.senders.add_user(info.sender),
        });
        self.index(id);
        id
    }

    /// Assigns the next id to a deleted series.
    pub(crate) fn add_deleted(&mut self, kind: Kind) {
        let measure = self.measures.add_user((kind, "".into()));
        self.series.push(Entry { key: None, measure, sender: u32::MAX });
        self.deleted += 1;
    }

    /// Indexes a series by its key.
    fn index(&mut self, id: SeriesId) {
        let (series, hasher) = (&self.series, &self.hasher);
        let hash = |id: &SeriesId| {
            hasher.hash_one(series[id.0 as usize].key.as_ref().map_or(&[][..], SeriesKey::as_bytes))
        };
        self.by_key.insert_unique(hash(&id), id, hash);
    }

    /// Series with this value of a tag, ascending.
    pub fn with_tag(&self, tag: &str, value: &str) -> &[SeriesId] {
        let found = self.postings.get(tag).and_then(|values| values.get(value));
        found.map_or(&[], Vec::as_slice)
    }

    /// The values of a tag that follow `after`, ascending, at most `count`.
    pub fn values_after(&self, tag: &str, after: Option<&str>, count: usize) -> Vec<Box<str>> {
        self.range_after(tag, after).take(count).cloned().collect()
    }

    /// Visits the values of [`Self::values_after`] without copying each; returns the last one.
    pub fn visit_values(
        &self,
        tag: &str,
        after: Option<&str>,
        count: usize,
        mut visit: impl FnMut(&str),
    ) -> Option<Box<str>> {
        let next = self.range_after(tag, after).take(count);
        next.inspect(|value| visit(value)).last().cloned()
    }

    fn range_after(&self, tag: &str, after: Option<&str>) -> impl Iterator<Item = &Box<str>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let values = self.postings.get(tag).into_iter();
        let next = values.map(move |values| values.range::<str, _>((from, Bound::Unbounded)));
        next.flatten().map(|(value, _)| value)
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
            let all = (0..self.series.len() as u32).map(SeriesId);
            return all.filter(|id| self.key(*id).is_some()).collect();
        };
        let in_all = |id: &&SeriesId| others.iter().all(|ids| ids.binary_search(id).is_ok());
        shortest.iter().filter(in_all).copied().collect()
    }
}

/// Bytes that a key takes.
fn key_bytes(key: &SeriesKey) -> usize {
    key.as_bytes().len() + KEY_BYTES
}

/// The metric and the tags, as matchers see them.
fn pairs(key: &SeriesKey) -> impl Iterator<Item = (&str, &str)> {
    std::iter::once((METRIC_TAG, key.metric())).chain(key.tags())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup;

    pub(super) fn info(metric: &str, tags: &[(&str, &str)]) -> SeriesInfo {
        let info = setup::series(metric, tags, Kind::Counter);
        SeriesInfo { unit: "bytes".into(), sender: "a".into(), ..info }
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
            assert_eq!((found.0 as usize, dictionary.info(found).as_ref()), (index, Some(series)));
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
        let other = SeriesInfo { sender: "b".into(), ..info("disk", &[]) };
        dictionary.add(other);
        assert_eq!(dictionary.largest_senders(1), [("a".into(), 3)]);
        assert_eq!(dictionary.largest_senders(9), [("a".into(), 3), ("b".into(), 1)]);
    }
}
