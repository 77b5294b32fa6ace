//! Filling of the dictionary with all series, one after the other, when the store is opened.
//!
//! Neighbours share most properties: unit, sender, and all tags but one or two. The indexes found
//! for one series are therefore tried for the next one before a search, and trees are built at the
//! end. Must never know: where series are stored.

use std::{
    collections::{BTreeMap, HashMap},
    hash::BuildHasher,
};

use foldhash::fast::RandomState;
use hashbrown::{HashTable, hash_table::Entry as TableEntry};

use super::{Dictionary, Entry, VALUE_BYTES, key_bytes, pairs};
use crate::model::{Kind, SeriesId, SeriesKey};

/// A dictionary that is being filled.
#[derive(Debug, Default)]
pub(crate) struct Filling {
    dictionary: Dictionary,
    /// Indexes of the last series' kind and unit, and of its sender.
    last: Option<(u32, u32)>,
    /// The tags of each project.
    projects: Vec<ProjectNames>,
}

/// The tags of the series of one project.
#[derive(Debug, Default)]
struct ProjectNames {
    tags: Vec<Tag>,
    /// Indexes in `tags` by name.
    names: HashMap<Box<str>, usize>,
    /// Indexes in `tags` of the last series' tags, in their order.
    last_tags: Vec<usize>,
}

/// The values of one tag, in the order in which they were added.
#[derive(Debug)]
struct Tag {
    name: Box<str>,
    values: Vec<(Box<str>, Vec<SeriesId>)>,
    /// Indexes of the values.
    indexes: HashTable<u32>,
    /// The index of the value of the last series.
    last: usize,
}

impl Filling {
    /// Returns an empty dictionary with room for `count` ids, `living` of which are not deleted.
    pub(crate) fn with_room(count: usize, living: usize) -> Self {
        let mut dictionary = Dictionary::default();
        dictionary.series.reserve_exact(count);
        // The table is empty, so nothing is hashed again. Most series are of the first project.
        dictionary.names[0].by_key.reserve(living, |_| 0);
        Self { dictionary, ..Self::default() }
    }

    /// Returns the id that the next series gets.
    pub(crate) fn next_id(&self) -> SeriesId {
        SeriesId(self.dictionary.series.len() as u32)
    }

    /// Adds a series; returns false when another one of the project has this key.
    pub(crate) fn add(&mut self, key: &SeriesKey, kind: Kind, unit: &str, sender: &str) -> bool {
        let id = self.next_id();
        let (measure, sender) = self.take(kind, unit, sender);
        let project = self.dictionary.senders.get(sender).project;
        if !self.index(project, key, id) {
            self.dictionary.measures.remove_user(measure);
            self.dictionary.senders.remove_user(sender);
            self.last = None;
            return false;
        }
        if self.projects.len() <= project {
            self.projects.resize_with(project + 1, ProjectNames::default);
        }
        let tags = &mut self.projects[project];
        for (position, (name, value)) in pairs(key).enumerate() {
            let tag = match tags.last_tags.get(position) {
                Some(tag) if *tags.tags[*tag].name == *name => *tag,
                _ => tags.find_tag(position, name),
            };
            tags.tags[tag].push(value, id, &self.dictionary.hasher);
        }
        self.dictionary.names[project].key_bytes += key_bytes(key);
        self.dictionary.series.push(Entry { key: Some(key.clone()), measure, sender });
        true
    }

    /// Assigns the next id to a deleted series.
    pub(crate) fn add_deleted(&mut self, kind: Kind) {
        self.dictionary.add_deleted(kind);
    }

    /// Returns the filled dictionary.
    pub(crate) fn done(self) -> Dictionary {
        let mut dictionary = self.dictionary;
        for (names, tags) in dictionary.names.iter_mut().zip(self.projects) {
            for Tag { name, values, .. } in tags.tags {
                let bytes = |(value, ids): &(Box<str>, Vec<SeriesId>)| {
                    VALUE_BYTES + value.len() + ids.capacity() * size_of::<SeriesId>()
                };
                names.index_bytes += values.iter().map(bytes).sum::<usize>();
                names.postings.insert(name, values.into_iter().collect::<BTreeMap<_, _>>());
            }
        }
        dictionary
    }

    /// Indexes a series by its key; returns false when another one of the project has the key.
    fn index(&mut self, project: usize, key: &SeriesKey, id: SeriesId) -> bool {
        let Dictionary { series, names, hasher, .. } = &mut self.dictionary;
        let by_key = &mut names[project].by_key;
        let key_of = |id: &SeriesId| series[id.0 as usize].key.as_ref();
        let hash = |id: &SeriesId| hasher.hash_one(key_of(id).map_or(&[][..], SeriesKey::as_bytes));
        let hash_of_key = hasher.hash_one(key.as_bytes());
        match by_key.entry(hash_of_key, |other| key_of(other) == Some(key), hash) {
            TableEntry::Occupied(_) => false,
            TableEntry::Vacant(vacant) => {
                vacant.insert(id);
                true
            }
        }
    }

    /// Returns the indexes of a series' kind and unit, and of its sender: those of the last series
    /// if the values are equal.
    fn take(&mut self, kind: Kind, unit: &str, sender: &str) -> (u32, u32) {
        let Dictionary { measures, senders, .. } = &mut self.dictionary;
        let (last_measure, last_sender) = self.last.unzip();
        let is_same = |index: &u32| {
            let (last_kind, last_unit) = measures.get(*index);
            *last_kind == kind && **last_unit == *unit
        };
        let measure = match last_measure.filter(is_same) {
            Some(index) => measures.add_user_at(index),
            None => measures.add_user((kind, unit.into())),
        };
        let sender = match last_sender.filter(|index| *senders.get(*index).name == *sender) {
            Some(index) => senders.add_user_at(index),
            None => self.dictionary.add_sender(sender.into()).0,
        };
        self.last = Some((measure, sender));
        (measure, sender)
    }
}

impl ProjectNames {
    /// Finds the tag at a position of a key, and notes it there for the next series.
    fn find_tag(&mut self, position: usize, name: &str) -> usize {
        let tag = self.names.get(name).copied().unwrap_or_else(|| {
            self.names.insert(name.into(), self.tags.len());
            self.tags.push(Tag::new(name));
            self.tags.len() - 1
        });
        match self.last_tags.get_mut(position) {
            Some(last) => *last = tag,
            None => self.last_tags.push(tag),
        }
        tag
    }
}

impl Tag {
    fn new(name: &str) -> Self {
        Self { name: name.into(), values: Vec::new(), indexes: HashTable::new(), last: 0 }
    }

    fn push(&mut self, value: &str, id: SeriesId, hasher: &RandomState) {
        if self.values.get(self.last).is_none_or(|(last, _)| **last != *value) {
            let values = &self.values;
            let text = |index: &u32| &*values[*index as usize].0;
            let hash_of_value = hasher.hash_one(value);
            let hash = |index: &u32| hasher.hash_one(text(index));
            self.last = match self.indexes.entry(hash_of_value, |index| text(index) == value, hash)
            {
                TableEntry::Occupied(found) => *found.get() as usize,
                TableEntry::Vacant(vacant) => {
                    vacant.insert(values.len() as u32);
                    self.values.push((value.into(), Vec::new()));
                    self.values.len() - 1
                }
            };
        }
        self.values[self.last].1.push(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::SeriesInfo,
        store::dictionary::{changes::SeriesUpdate, names::Names, tests::info},
    };

    /// Returns the answers and counts of a dictionary.
    fn answers(dictionary: &Dictionary) -> impl PartialEq + std::fmt::Debug + use<> {
        let ids = || (0..dictionary.id_count() as u32).map(SeriesId);
        let infos: Vec<_> = ids().map(|id| dictionary.info(id)).collect();
        let found = infos.iter().flatten();
        let found: Vec<_> =
            found.map(|info| dictionary.find_of_sender(&info.sender, &info.key)).collect();
        let kinds: Vec<_> = ids().map(|id| dictionary.kind(id)).collect();
        let senders = dictionary.largest_senders(9);
        let of_project = |names: &Names| (names.key_bytes, names.postings.clone());
        let names: Vec<_> = dictionary.names.iter().map(of_project).collect();
        (infos, found, kinds, senders, dictionary.len(), names)
    }

    #[test]
    fn a_filled_dictionary_equals_a_dictionary_to_which_each_series_was_added() {
        let with = |unit: &str, sender: &str, info: SeriesInfo| {
            let (unit, sender) = (unit.into(), sender.into());
            SeriesInfo { unit, sender, ..info }
        };
        let all = [
            with("", "a", info("cpu", &[("host", "a"), ("core", "0")])),
            with("", "a", info("cpu", &[("host", "a"), ("core", "1")])),
            with("bytes", "a", info("mem", &[("host", "a")])),
            with("bytes", "b", info("mem", &[("host", "b"), ("zone", "0")])),
            with("", "b", info("up", &[])),
            with("", "a", info("cpu", &[("host", "b"), ("core", "0")])),
            with("", "\u{1}other\0a", info("cpu", &[("host", "a"), ("core", "0")])),
            with("", "\u{1}other\0a", info("mem", &[("host", "a")])),
        ];
        let (mut filling, mut added) = (Filling::with_room(2, 2), Dictionary::default());
        for (index, info) in all.iter().enumerate() {
            let add = |filling: &mut Filling, key: &SeriesKey| {
                filling.add(key, info.kind, &info.unit, &info.sender)
            };
            assert_eq!(filling.next_id(), SeriesId(index as u32 * 2));
            assert!(add(&mut filling, &info.key));
            assert!(!add(&mut filling, &info.key), "the key exists already");
            filling.add_deleted(Kind::Delta);
            added.add(info.clone());
            added.add_deleted(Kind::Delta);
        }
        let mut filled = filling.done();
        assert_eq!(answers(&filled), answers(&added));
        // After all deletions, no bytes are left.
        let deletions: Vec<_> = (0..16).map(|id| SeriesUpdate::delete(SeriesId(id))).collect();
        filled.update(&deletions);
        let bytes = |names: &Names| (names.key_bytes, names.index_bytes);
        let bytes: Vec<_> = filled.names.iter().map(bytes).collect();
        assert_eq!((filled.len(), bytes), (0, vec![(0, 0); 2]));
    }
}
