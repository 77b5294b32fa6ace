//! The dictionary: maps series to ids, ids to series, and tags to the series that carry them.
//!
//! The dictionary is in memory as a whole; every entry is also in the journal's `series` table,
//! written by the transaction that first uses it. Only the appender adds and changes entries. An id
//! always stands for the same series: the id of a deleted series is not reused. Each project has
//! its own names; the project of a series is the project of the sender that defined it.
//!
//! Must never know: samples, and the files.

pub(crate) mod changes;
pub(crate) mod filling;
mod names;
mod pool;
mod project;
mod update;

use std::{
    borrow::Borrow,
    cmp::Reverse,
    collections::HashMap,
    hash::{BuildHasher, Hash, Hasher},
    sync::Arc,
};

use foldhash::fast::RandomState;

use crate::model::{
    DEFAULT_PROJECT, Kind, METRIC_TAG, ProjectName, SeriesId, SeriesInfo, SeriesKey,
    split_stored_name,
};
use names::Names;
use pool::Pool;
pub use project::ProjectDictionary;

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
    /// Index of the kind and the unit; the unit of a deleted series is empty.
    measure: u32,
    /// Index of the sender; `u32::MAX` for a deleted series.
    sender: u32,
}

const _: () = assert!(size_of::<Entry>() == 24);

/// The kind of the values, and their unit.
type Measure = (Kind, Arc<str>);

/// The stored name of a sender, with the index of its project.
#[derive(Debug, Clone)]
struct StoredSender {
    name: Arc<str>,
    project: usize,
}

/// A stored name identifies its project.
impl PartialEq for StoredSender {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for StoredSender {}

impl Hash for StoredSender {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Borrow<str> for StoredSender {
    fn borrow(&self) -> &str {
        &self.name
    }
}

/// All series of the store.
#[derive(Debug)]
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
    /// Seeded at random: senders choose the keys.
    hasher: RandomState,
    measures: Pool<Measure>,
    /// The senders that defined series.
    senders: Pool<StoredSender>,
    /// The projects that ever had series, the first of them `default`.
    projects: Vec<Box<str>>,
    /// The names of the series of each project.
    names: Vec<Names>,
}

impl Default for Dictionary {
    fn default() -> Self {
        Self {
            series: Vec::new(),
            deleted: 0,
            generation: 0,
            renamed: HashMap::new(),
            parts: HashMap::new(),
            wholes: HashMap::new(),
            hasher: RandomState::default(),
            measures: Pool::default(),
            senders: Pool::default(),
            projects: vec![DEFAULT_PROJECT.into()],
            names: vec![Names::default()],
        }
    }
}

/// The bytes that a value of a tag takes in the postings besides its text. The nodes of a tree are
/// two thirds full on average.
const VALUE_BYTES: usize = (size_of::<Box<str>>() + size_of::<Vec<SeriesId>>()) * 3 / 2;
/// The bytes that a key takes besides its text: two reference counters, and the average rounding of
/// an allocation.
const KEY_BYTES: usize = 16 + 8;

impl Dictionary {
    /// Returns the approximate bytes of the series, and of the index of their tags.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let keys = |names: &Names| names.by_key.allocation_size() + names.key_bytes;
        let keys: usize = self.names.iter().map(keys).sum();
        let index = self.names.iter().map(|names| names.index_bytes).sum();
        (size_of_val(&self.series[..]) + keys, index)
    }

    /// Returns the part of the dictionary that a project sees.
    pub fn of_project<'a>(&'a self, project: &'a ProjectName) -> ProjectDictionary<'a, &'a Self> {
        ProjectDictionary::new(self, project)
    }

    /// Returns the index of a project; `None` when it never had series.
    fn index_of(&self, project: &str) -> Option<usize> {
        self.projects.iter().position(|known| **known == *project)
    }

    /// Returns true when only the project `default` ever had series.
    pub(crate) fn has_one_project(&self) -> bool {
        self.projects.len() == 1
    }

    /// Returns the index of the project of a series that is not deleted.
    fn project_of(&self, id: SeriesId) -> Option<usize> {
        let entry = self.series.get(id.0 as usize)?;
        entry.key.as_ref()?;
        Some(self.senders.get(entry.sender).project)
    }

    /// Adds a user of the sender with a stored name; returns its index, and the index of its
    /// project.
    fn add_sender(&mut self, name: Arc<str>) -> (u32, usize) {
        let (project, _) = split_stored_name(&name);
        let project = self.index_of(project).unwrap_or_else(|| {
            self.projects.push(project.into());
            self.names.push(Names::default());
            self.names.len() - 1
        });
        (self.senders.add_user(StoredSender { name, project }), project)
    }

    /// Returns the number of series; deleted ones do not count.
    pub fn len(&self) -> usize {
        self.series.len() - self.deleted
    }

    /// Returns true if there is no series.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of ids that were ever assigned: the id of the next new series.
    pub fn id_count(&self) -> usize {
        self.series.len()
    }

    /// Returns the number of changes of known series: after deleting or renaming, earlier results
    /// may be out of date.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns true if an id that was found for a key in `generation` still stands for that key.
    pub fn is_current(&self, id: SeriesId, generation: u64) -> bool {
        let renamed = self.renamed.get(&id).copied().unwrap_or(0);
        self.key(id).is_some() && renamed <= generation
    }

    /// Returns the series of a project with this key.
    fn find_in(&self, project: usize, key: &SeriesKey) -> Option<SeriesId> {
        let hash = self.hasher.hash_one(key.as_bytes());
        self.names[project].by_key.find(hash, |id| self.key(*id) == Some(key)).copied()
    }

    /// Returns the series with a key in the project of a sender, by the sender's stored name.
    pub(crate) fn find_of_sender(&self, sender: &str, key: &SeriesKey) -> Option<SeriesId> {
        self.find_in(self.index_of(split_stored_name(sender).0)?, key)
    }

    /// Returns the number of series with a value of a tag in the project of a sender.
    pub(crate) fn count_with_tag(&self, sender: &str, tag: &str, value: &str) -> usize {
        let index = self.index_of(split_stored_name(sender).0);
        index.map_or(0, |index| self.names[index].with_tag(tag, value).len())
    }

    /// Returns true for the first series of its metric in its project.
    pub fn is_first(&self, info: &SeriesInfo, id: SeriesId) -> bool {
        let index = self.index_of(split_stored_name(&info.sender).0);
        let names = index.map(|index| &self.names[index]);
        let of_metric = names.map(|names| names.with_tag(METRIC_TAG, info.key.metric()));
        of_metric.and_then(|ids| ids.first()) == Some(&id)
    }

    /// Returns the number of series in the project of a sender.
    pub(crate) fn count_beside_sender(&self, sender: &str) -> usize {
        let index = self.index_of(split_stored_name(sender).0);
        index.map_or(0, |index| self.names[index].by_key.len())
    }

    /// Returns all series that are not deleted, ascending.
    pub(crate) fn living(&self) -> Vec<SeriesId> {
        let all = (0..self.series.len() as u32).map(SeriesId);
        all.filter(|id| self.key(*id).is_some()).collect()
    }

    /// Returns the key of a series; `None` when it was deleted.
    pub fn key(&self, id: SeriesId) -> Option<&SeriesKey> {
        self.series.get(id.0 as usize)?.key.as_ref()
    }

    /// Returns the definition of a series, with the stored name of its sender; `None` when it was
    /// deleted.
    pub fn info(&self, id: SeriesId) -> Option<SeriesInfo> {
        let entry = self.series.get(id.0 as usize)?;
        let key = entry.key.clone()?;
        let (kind, unit) = self.measures.get(entry.measure).clone();
        Some(SeriesInfo { key, kind, unit, sender: self.senders.get(entry.sender).name.clone() })
    }

    /// Returns the kind of a series, also when it was deleted.
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

    /// Returns true if any series has parts.
    pub fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Returns the number of series that a sender defined, by its stored name.
    pub fn count_of_sender(&self, sender: &str) -> usize {
        self.senders.user_count(sender)
    }

    /// Returns the number of senders with series that are not deleted.
    pub fn sender_count(&self) -> usize {
        self.senders.len()
    }

    /// Returns the stored names of the senders that defined most series, with their numbers of
    /// series, the largest first.
    pub fn largest_senders(&self, count: usize) -> Vec<(Arc<str>, usize)> {
        let mut all: Vec<_> =
            self.senders.iter().map(|(sender, series)| (Reverse(series), &sender.name)).collect();
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
        let (sender, project) = self.add_sender(info.sender);
        self.names[project].add_tags(&info.key, id);
        let measure = self.measures.add_user((info.kind, info.unit));
        self.series.push(Entry { key: Some(info.key), measure, sender });
        self.index(project, id);
        id
    }

    /// Assigns the next id to a deleted series.
    pub(crate) fn add_deleted(&mut self, kind: Kind) {
        let measure = self.measures.add_user((kind, "".into()));
        self.series.push(Entry { key: None, measure, sender: u32::MAX });
        self.deleted += 1;
    }

    /// Indexes a series of a project by its key.
    fn index(&mut self, project: usize, id: SeriesId) {
        let (series, hasher) = (&self.series, &self.hasher);
        let hash = |id: &SeriesId| {
            hasher.hash_one(series[id.0 as usize].key.as_ref().map_or(&[][..], SeriesKey::as_bytes))
        };
        self.names[project].by_key.insert_unique(hash(&id), id, hash);
    }
}

/// Returns the bytes that a key takes.
fn key_bytes(key: &SeriesKey) -> usize {
    key.as_bytes().len() + KEY_BYTES
}

/// Returns the metric and the tags, as matchers see them.
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

    pub(super) fn of_default(dictionary: &Dictionary) -> ProjectDictionary<'_, &Dictionary> {
        dictionary.of_project(ProjectName::of_default())
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
            let found = of_default(&dictionary).find(&series.key).unwrap();
            assert_eq!((found.0 as usize, dictionary.info(found).as_ref()), (index, Some(series)));
        }
        let check = |matchers: &[(&str, &str)], expected: &[u32]| {
            let matchers: Vec<_> = matchers
                .iter()
                .map(|(tag, value)| Matcher { tag: (*tag).into(), value: (*value).into() })
                .collect();
            let found: Vec<_> =
                of_default(&dictionary).select(&matchers).iter().map(|id| id.0).collect();
            assert_eq!(found, expected, "{matchers:?}");
        };
        check(&[], &[0, 1, 2]);
        check(&[("host", "a")], &[0, 2]);
        check(&[(METRIC_TAG, "cpu"), ("host", "a")], &[0]);
        check(&[("host", "c")], &[]);
        check(&[("zone", "a")], &[]);
        let default = of_default(&dictionary);
        assert_eq!(default.with_tag("host", "a"), [SeriesId(0), SeriesId(2)]);
        assert_eq!(default.values_after("host", None, 1), ["a".into()]);
        assert_eq!(default.values_after("host", Some("a"), 9), ["b".into()]);
        assert_eq!(default.tag_names(), [METRIC_TAG.into(), "core".into(), "host".into()]);
        assert_eq!([dictionary.count_of_sender("a"), dictionary.count_of_sender("b")], [3, 0]);
        let other = SeriesInfo { sender: "b".into(), ..info("disk", &[]) };
        dictionary.add(other);
        assert_eq!(dictionary.largest_senders(1), [("a".into(), 3)]);
        assert_eq!(dictionary.largest_senders(9), [("a".into(), 3), ("b".into(), 1)]);
    }
}
