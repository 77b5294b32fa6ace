//! The dictionary as one project sees it: it does not contain the series of other projects.
//!
//! Must never know: how series are stored, and who belongs to a project.

use std::{cmp::Reverse, ops::Deref, sync::Arc};

use super::{Dictionary, Matcher, names::Names};
use crate::model::{Kind, ProjectName, SeriesId, SeriesInfo, SeriesKey, split_stored_name};

/// The part of a dictionary that belongs to one project. Names of senders are without the project.
#[derive(Debug)]
pub struct ProjectDictionary<'a, D> {
    all: D,
    project: &'a ProjectName,
    /// The index of the project; `None` while the project has no series.
    index: Option<usize>,
}

impl<'a, D: Deref<Target = Dictionary>> ProjectDictionary<'a, D> {
    pub(crate) fn new(all: D, project: &'a ProjectName) -> Self {
        let index = if project.is_default() { Some(0) } else { all.index_of(project.as_str()) };
        Self { all, project, index }
    }

    fn names(&self) -> Option<&Names> {
        self.index.map(|index| &self.all.names[index])
    }

    /// Returns true if all series belong to the project. A project without series sees none.
    fn owns_all(&self) -> bool {
        self.index.is_some() && self.all.has_one_project()
    }

    fn is_own(&self, id: SeriesId) -> bool {
        self.owns_all() || self.index.is_some() && self.all.project_of(id) == self.index
    }

    /// Returns the number of series; deleted ones do not count.
    pub fn len(&self) -> usize {
        self.names().map_or(0, |names| names.by_key.len())
    }

    /// Returns true if there is no series.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of ids that were ever assigned, for series of any project.
    pub fn id_count(&self) -> usize {
        self.all.id_count()
    }

    /// Returns the number of changes of known series; see [`Dictionary::generation`].
    pub fn generation(&self) -> u64 {
        self.all.generation()
    }

    /// Returns true if an id that was found for a key in `generation` still stands for that key.
    pub fn is_current(&self, id: SeriesId, generation: u64) -> bool {
        self.all.is_current(id, generation)
    }

    /// Returns the series with this key.
    pub fn find(&self, key: &SeriesKey) -> Option<SeriesId> {
        self.all.find_in(self.index?, key)
    }

    /// Returns the key of a series; `None` when it was deleted.
    pub fn key(&self, id: SeriesId) -> Option<&SeriesKey> {
        self.all.key(id).filter(|_| self.is_own(id))
    }

    /// Returns the definition of a series; `None` when it was deleted.
    pub fn info(&self, id: SeriesId) -> Option<SeriesInfo> {
        let info = self.all.info(id).filter(|_| self.is_own(id))?;
        if self.project.is_default() {
            return Some(info);
        }
        let sender = split_stored_name(&info.sender).1.into();
        Some(SeriesInfo { sender, ..info })
    }

    /// Removes series of other projects.
    pub(crate) fn retain_own(&self, ids: &mut Vec<SeriesId>) {
        if !self.owns_all() {
            ids.retain(|id| self.is_own(*id));
        }
    }

    /// Returns the kind of a series, also when it was deleted.
    pub fn kind(&self, id: SeriesId) -> Option<Kind> {
        self.all.kind(id)
    }

    /// Returns the parts of a series; see [`Dictionary::parts`].
    pub fn parts(&self, id: SeriesId) -> &[SeriesId] {
        self.all.parts(id)
    }

    /// Returns true when a part of a series has another kind.
    pub fn has_parts_of_another_kind(&self, id: SeriesId) -> bool {
        self.all.has_parts_of_another_kind(id)
    }

    /// Returns the series that a part belongs to.
    pub fn whole_of(&self, part: SeriesId) -> Option<SeriesId> {
        self.all.whole_of(part)
    }

    /// Returns true if any series has parts.
    pub fn has_parts(&self) -> bool {
        self.all.has_parts()
    }

    /// Returns the number of series that a sender defined.
    pub fn count_of_sender(&self, sender: &str) -> usize {
        if self.project.is_default() {
            return self.all.count_of_sender(sender);
        }
        self.all.count_of_sender(&self.project.stored_name(sender))
    }

    /// Returns the number of senders with series that are not deleted.
    pub fn sender_count(&self) -> usize {
        self.own_senders().count()
    }

    /// Returns the senders that defined most series, with their numbers of series, the largest
    /// first.
    pub fn largest_senders(&self, count: usize) -> Vec<(Arc<str>, usize)> {
        let mut all: Vec<_> =
            self.own_senders().map(|(name, series)| (Reverse(series), name)).collect();
        if all.len() > count {
            all.select_nth_unstable(count);
            all.truncate(count);
        }
        all.sort_unstable();
        all.into_iter().map(|(Reverse(series), name)| (name.into(), series)).collect()
    }

    /// Calls `visit` with each sender that defined series and its number of series, in no order.
    pub fn visit_senders(&self, mut visit: impl FnMut(&str, usize)) {
        self.own_senders().for_each(|(name, series)| visit(name, series));
    }

    fn own_senders(&self) -> impl Iterator<Item = (&str, usize)> {
        let all = self.all.senders.iter();
        all.filter_map(|(sender, series)| Some((self.project.own_name(&sender.name)?, series)))
    }

    /// Returns the series with this value of a tag, ascending.
    pub fn with_tag(&self, tag: &str, value: &str) -> &[SeriesId] {
        self.names().map_or(&[], |names| names.with_tag(tag, value))
    }

    /// Returns the values of a tag that follow `after`, ascending, at most `count`.
    pub fn values_after(&self, tag: &str, after: Option<&str>, count: usize) -> Vec<Box<str>> {
        let next = self.names().into_iter().flat_map(|names| names.range_after(tag, after));
        next.take(count).cloned().collect()
    }

    /// Visits the values of [`Self::values_after`] without copying each; returns the last one.
    pub fn visit_values(
        &self,
        tag: &str,
        after: Option<&str>,
        count: usize,
        mut visit: impl FnMut(&str),
    ) -> Option<Box<str>> {
        let next = self.names()?.range_after(tag, after).take(count);
        next.inspect(|value| visit(value)).last().cloned()
    }

    /// Returns the names of all tags, ascending; [`crate::model::METRIC_TAG`] is one of them.
    pub fn tag_names(&self) -> Vec<Box<str>> {
        self.names().into_iter().flat_map(|names| names.postings.keys().cloned()).collect()
    }

    /// Returns the series that match all matchers, ascending; all series when there is none.
    pub fn select(&self, matchers: &[Matcher]) -> Vec<SeriesId> {
        let Some(names) = self.names() else { return Vec::new() };
        names.select(matchers).unwrap_or_else(|| {
            // A walk over all ids is faster, but its duration would reveal the number of series of
            // other projects.
            if self.all.has_one_project() { self.all.living() } else { names.all() }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        setup,
        store::dictionary::{changes::SeriesUpdate, filling::Filling},
    };

    const NAMES: [&str; 3] = ["default", "red", "red-2"];

    fn project(index: usize) -> ProjectName {
        ProjectName::new(NAMES[index % NAMES.len()]).unwrap()
    }

    fn key(index: u8) -> SeriesKey {
        let (metric, host) = (format!("m{}", index % 3), format!("h{}", index / 3 % 3));
        setup::key(&metric, &[("host", &host)])
    }

    /// Returns the answers about all keys, without ids, which depend on the series of all projects.
    fn answers<D: Deref<Target = Dictionary>>(of: &ProjectDictionary<'_, D>) -> String {
        let keys = |ids: &[SeriesId]| -> Vec<_> {
            ids.iter().map(|id| of.key(*id).map(ToString::to_string)).collect()
        };
        let mut all = format!("{} {:?} {}", of.len(), of.tag_names(), of.sender_count());
        write!(all, "{:?} {:?}", of.largest_senders(9), keys(&of.select(&[]))).unwrap();
        for tag in of.tag_names() {
            for value in of.values_after(&tag, None, 9) {
                let matcher = Matcher { tag: tag.to_string(), value: value.to_string() };
                assert_eq!(of.select(&[matcher]), of.with_tag(&tag, &value));
                write!(all, "{tag}={value} {:?}", keys(of.with_tag(&tag, &value))).unwrap();
            }
        }
        for index in 0..9 {
            let found = of.find(&key(index));
            let parts = found.map(|id| of.parts(id).len());
            write!(all, "{:?} {parts:?}", found.map(|id| of.info(id))).unwrap();
        }
        all
    }

    #[derive(Debug, Clone)]
    enum Step {
        Add { kind: usize, sender: u8 },
        Delete,
        Rename { to: u8 },
        Merge { into: u8 },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..3_usize, 0..3_u8).prop_map(|(kind, sender)| Step::Add { kind, sender }),
            1 => Just(Step::Delete),
            1 => (0..9_u8).prop_map(|to| Step::Rename { to }),
            1 => (0..9_u8).prop_map(|into| Step::Merge { into }),
        ]
    }

    /// Makes a step in one project.
    fn run(all: &mut Dictionary, of: &ProjectName, index: u8, step: &Step) {
        let find = |all: &Dictionary, index| all.of_project(of).find(&key(index));
        let found = find(all, index);
        match *step {
            Step::Add { kind, sender } if found.is_none() => {
                let sender = of.stored_name(&format!("s{sender}"));
                let (key, kind) = (key(index), Kind::OF_NUMBERS[kind]);
                all.add(SeriesInfo { key, kind, unit: "".into(), sender });
            }
            Step::Delete => {
                all.update(&found.map(SeriesUpdate::delete).into_iter().collect::<Vec<_>>());
            }
            Step::Rename { to } if find(all, to).is_none() => {
                let update = found.map(|id| SeriesUpdate::rename(id, key(to)));
                all.update(&update.into_iter().collect::<Vec<_>>());
            }
            Step::Merge { into } if into != index => {
                if let (Some(id), Some(into)) = (found, find(all, into)) {
                    all.update(&[SeriesUpdate::merge(id, into)]);
                }
            }
            Step::Add { .. } | Step::Rename { .. } | Step::Merge { .. } => {}
        }
    }

    /// Returns a dictionary that a start fills with the same series.
    fn filled_again(all: &Dictionary) -> Dictionary {
        let mut filling = Filling::default();
        for id in (0..all.id_count() as u32).map(SeriesId) {
            match all.info(id) {
                Some(info) => assert!(filling.add(&info.key, info.kind, &info.unit, &info.sender)),
                None => filling.add_deleted(all.kind(id).unwrap()),
            }
        }
        let mut filled = filling.done();
        let merged: Vec<_> = (0..all.id_count() as u32)
            .filter_map(|id| Some((SeriesId(id), all.whole_of(SeriesId(id))?)))
            .collect();
        filled.note_merged(&merged);
        filled
    }

    proptest! {
        #[test]
        fn each_project_has_the_answers_of_a_dictionary_of_its_own(
            steps in prop::collection::vec((0..3_usize, 0..9_u8, step()), 1..60)
        ) {
            let mut shared = Dictionary::default();
            let mut apart: [Dictionary; 3] = Default::default();
            for (index, key, step) in &steps {
                run(&mut shared, &project(*index), *key, step);
                run(&mut apart[*index], &project(*index), *key, step);
            }
            let filled = filled_again(&shared);
            for (index, apart) in apart.iter().enumerate() {
                let expected = answers(&apart.of_project(&project(index)));
                prop_assert_eq!(answers(&shared.of_project(&project(index))), expected.clone());
                prop_assert_eq!(answers(&filled.of_project(&project(index))), expected);
            }
            // No project knows an id of another one.
            for id in (0..shared.id_count() as u32).map(SeriesId) {
                let known = |index| shared.of_project(&project(index)).key(id).is_some();
                let count = (0..3).filter(|index| known(*index)).count();
                prop_assert_eq!(count, usize::from(shared.key(id).is_some()));
            }
        }
    }
}
