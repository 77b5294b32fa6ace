//! Changes of known series: deleted series are no longer found, renamed series are found by their
//! new key. Each list of a tag is updated in one pass, however many series change.
//!
//! Must never know: the journal, and why a series changes; `changes.rs` plans the changes.

use std::{
    collections::{BTreeMap, HashMap},
    hash::BuildHasher,
};

use super::{Dictionary, VALUE_BYTES, changes::SeriesUpdate, key_bytes, names::Postings, pairs};
use crate::model::{SeriesId, SeriesKey};

/// The series to add to, or to remove from, the list of a project's tag, by name and value.
type Moves = BTreeMap<(usize, Box<str>, Box<str>), Vec<SeriesId>>;

impl Dictionary {
    /// Applies updates of known series, ids ascending.
    pub(crate) fn update(&mut self, updates: &[SeriesUpdate]) {
        self.generation += 1;
        let (mut left, mut joined) = (Moves::new(), Moves::new());
        for SeriesUpdate { id, key, .. } in updates {
            let (Some(old), Some(project)) = (self.key(*id), self.project_of(*id)) else {
                continue;
            };
            let has = |key: &SeriesKey, pair| pairs(key).any(|known| known == pair);
            let note = |moves: &mut Moves, (name, value): (&str, &str)| {
                moves.entry((project, name.into(), value.into())).or_default().push(*id);
            };
            let stays = |pair| key.as_ref().is_some_and(|key| has(key, pair));
            pairs(old).filter(|pair| !stays(*pair)).for_each(|pair| note(&mut left, pair));
            let new = key.iter().flat_map(pairs);
            new.filter(|pair| !has(old, *pair)).for_each(|pair| note(&mut joined, pair));
            self.unindex(*id);
        }
        for ((project, name, value), ids) in left {
            let names = &mut self.names[project];
            names.index_bytes -= remove_from_list(&mut names.postings, &name, &value, &ids);
        }
        for ((project, name, value), ids) in joined {
            let (text, names) = (value.len(), &mut self.names[project]);
            let list = names.postings.entry(name).or_default().entry(value).or_default();
            names.index_bytes += if list.is_empty() { VALUE_BYTES + text } else { 0 };
            let room = list.capacity();
            list.extend(ids);
            names.index_bytes += (list.capacity() - room) * size_of::<SeriesId>();
            list.sort_unstable();
        }
        for SeriesUpdate { id, key, .. } in updates {
            match key {
                None => self.forget(*id),
                Some(key) => self.rename(*id, key),
            }
        }
        for update in updates.iter().filter(|update| update.key.is_none() && update.into.is_none())
        {
            for part in self.parts.remove(&update.id).unwrap_or_default() {
                self.wholes.remove(&part);
            }
        }
        let merged: Vec<_> =
            updates.iter().filter_map(|update| Some((update.id, update.into?))).collect();
        self.note_merged(&merged);
    }

    /// Notes which series are parts of others. The parts of a merged series move with it.
    pub(crate) fn note_merged(&mut self, merged: &[(SeriesId, SeriesId)]) {
        let into: HashMap<SeriesId, SeriesId> = merged.iter().copied().collect();
        for (id, _) in merged {
            // The number of steps is limited, because damaged rows may form a cycle.
            let mut whole = *id;
            for _ in merged {
                let Some(next) = into.get(&whole) else { break };
                whole = *next;
            }
            // A series that has a key is not a part, and neither is one whose whole has no key.
            if self.key(*id).is_none() && self.key(whole).is_some() {
                let mut former = self.parts.remove(id).unwrap_or_default();
                former.push(*id);
                self.wholes.extend(former.iter().map(|part| (*part, whole)));
                let parts = self.parts.entry(whole).or_default();
                parts.extend(former);
                parts.sort_unstable();
                parts.dedup();
            }
        }
    }

    fn forget(&mut self, id: SeriesId) {
        let Some(project) = self.project_of(id) else { return };
        let entry = &mut self.series[id.0 as usize];
        let Some(key) = entry.key.take() else { return };
        self.names[project].key_bytes -= key_bytes(&key);
        let kind = self.measures.get(entry.measure).0;
        let measure = self.measures.add_user((kind, "".into()));
        self.measures.remove_user(std::mem::replace(&mut entry.measure, measure));
        self.senders.remove_user(std::mem::replace(&mut entry.sender, u32::MAX));
        self.deleted += 1;
        self.renamed.remove(&id);
    }

    fn rename(&mut self, id: SeriesId, key: &SeriesKey) {
        let Some(project) = self.project_of(id) else { return };
        if let Some(old) = &mut self.series[id.0 as usize].key {
            let names = &mut self.names[project];
            names.key_bytes += key_bytes(key);
            names.key_bytes -= key_bytes(old);
            *old = key.clone();
            self.renamed.insert(id, self.generation);
            self.index(project, id);
        }
    }

    fn unindex(&mut self, id: SeriesId) {
        let (Some(key), Some(project)) = (self.key(id), self.project_of(id)) else { return };
        let hash = self.hasher.hash_one(key.as_bytes());
        if let Ok(entry) = self.names[project].by_key.find_entry(hash, |known| *known == id) {
            entry.remove();
        }
    }
}

/// Removes series from a tag's list, and an empty list from the tag. Returns the freed bytes.
fn remove_from_list(postings: &mut Postings, name: &str, value: &str, ids: &[SeriesId]) -> usize {
    let Some(values) = postings.get_mut(name) else { return 0 };
    let Some(list) = values.get_mut(value) else { return 0 };
    remove_all(list, ids);
    if !list.is_empty() {
        return 0;
    }
    let freed = VALUE_BYTES + value.len() + list.capacity() * size_of::<SeriesId>();
    values.remove(value);
    if values.is_empty() {
        postings.remove(name);
    }
    freed
}

/// Removes ascending ids from an ascending list: each run of ids between them is moved at once.
fn remove_all(list: &mut Vec<SeriesId>, leaving: &[SeriesId]) {
    let (mut kept, mut from) = (0, 0);
    for id in leaving {
        let Ok(at) = list[from..].binary_search(id) else { continue };
        list.copy_within(from..from + at, kept);
        (kept, from) = (kept + at, from + at + 1);
    }
    list.copy_within(from.., kept);
    list.truncate(list.len() - (from - kept));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_ids_leave_a_list_and_the_others_stay_in_order() {
        for (leaving, expected) in [
            (&[][..], &[1, 3, 5, 7, 9][..]),
            (&[1, 9], &[3, 5, 7]),
            (&[3, 5], &[1, 7, 9]),
            (&[0, 2, 5, 10], &[1, 3, 7, 9]),
            (&[1, 3, 5, 7, 9], &[]),
        ] {
            let mut list = [1, 3, 5, 7, 9].map(SeriesId).to_vec();
            let leaving: Vec<_> = leaving.iter().copied().map(SeriesId).collect();
            remove_all(&mut list, &leaving);
            assert_eq!(list.iter().map(|id| id.0).collect::<Vec<_>>(), expected);
        }
    }
    use crate::{
        model::Kind,
        store::dictionary::{
            METRIC_TAG, Matcher,
            tests::{info, of_default},
        },
    };

    #[test]
    fn deleted_series_are_not_found_and_renamed_series_are_found_by_their_new_key() {
        let mut dictionary = Dictionary::default();
        for host in ["a", "b", "c"] {
            dictionary.add(info("cpu", &[("host", host)]));
        }
        let ids = |dictionary: &Dictionary, tag: &str, value: &str| {
            let matcher = Matcher { tag: tag.into(), value: value.into() };
            of_default(dictionary).select(&[matcher]).iter().map(|id| id.0).collect::<Vec<_>>()
        };
        let before = dictionary.generation();
        let bytes_before = dictionary.bytes();
        let key = info("cpu", &[("host", "z"), ("rack", "1")]).key;
        dictionary.update(&[
            SeriesUpdate::delete(SeriesId(0)),
            SeriesUpdate::rename(SeriesId(2), key.clone()),
        ]);
        assert_eq!((dictionary.len(), dictionary.id_count()), (2, 3));
        assert_eq!(dictionary.count_of_sender("a"), 2);
        let find = |key: &SeriesKey| of_default(&dictionary).find(key);
        assert!(find(&info("cpu", &[("host", "a")]).key).is_none());
        assert!(find(&info("cpu", &[("host", "c")]).key).is_none());
        assert_eq!(find(&key), Some(SeriesId(2)));
        assert_eq!(ids(&dictionary, "host", "a"), [0; 0]);
        assert_eq!(ids(&dictionary, "rack", "1"), [2]);
        assert_eq!(ids(&dictionary, METRIC_TAG, "cpu"), [1, 2]);
        assert_eq!(dictionary.living(), [SeriesId(1), SeriesId(2)]);
        let current = |id, generation| dictionary.is_current(SeriesId(id), generation);
        assert_eq!(
            [current(0, before), current(1, before), current(2, before)],
            [false, true, false]
        );
        assert!(current(2, dictionary.generation()));
        assert_eq!(dictionary.kind(SeriesId(0)), Some(Kind::Counter));
        // A deleted key gets a new id; a renamed series keeps its id.
        assert_eq!(dictionary.add(info("cpu", &[("host", "a")])), SeriesId(3));
        let back = SeriesUpdate::rename(SeriesId(2), info("cpu", &[("host", "b2")]).key);
        dictionary.update(&[back, SeriesUpdate::delete(SeriesId(3))]);
        assert_eq!(ids(&dictionary, METRIC_TAG, "cpu"), [1, 2]);
        assert_eq!(ids(&dictionary, "rack", "1"), [0; 0]);
        assert_eq!(dictionary.count_of_sender("a"), 2);
        // Deletions subtract the same memory that additions added.
        let all = [1, 2].map(|id| SeriesUpdate::delete(SeriesId(id)));
        dictionary.update(&all);
        let names = &dictionary.names[0];
        assert_eq!((names.key_bytes, names.index_bytes), (0, 0));
        assert!(bytes_before.0 > 0 && bytes_before.1 > 0);
    }
}
