//! The collections whose documents are not published yet, and the known marks of all collections.
//!
//! Pure decisions. Must never know: the connection, the cells.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{
    model::{GranularityIndex, UnixMillis},
    publish::Form,
    store::{ChangedSeries, FollowedPartition, Store},
};

/// The partitions whose documents are in one collection: partitions with the same name, of all
/// levels with the same slot width.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CollectionGroup {
    /// The name of the collection.
    pub(super) collection: String,
    /// The granularity of the settings with this slot width.
    pub(super) granularity: GranularityIndex,
    pub(super) form: Form,
    /// The start of the partitions; the oldest ones are published first.
    pub(super) start: UnixMillis,
    /// The last journal record that all documents contain.
    pub(super) through: u64,
    /// The number of transactions that replaced cells.
    pub(super) replaced: u64,
    /// The form and the marks of the partitions, as they are stored in MongoDB.
    pub(super) mark: String,
    /// All documents whose period is over: start and end.
    pub(super) finished: BTreeMap<UnixMillis, UnixMillis>,
    /// The changed documents: start, end and series.
    pub(super) changed: BTreeMap<UnixMillis, (UnixMillis, ChangedSeries)>,
}

/// Groups partitions by collection.
pub(super) fn groups(
    store: &Store,
    forms: &[(GranularityIndex, Form)],
    partitions: &[FollowedPartition],
) -> Vec<CollectionGroup> {
    let mut all: BTreeMap<String, CollectionGroup> = BTreeMap::new();
    for partition in partitions {
        let level = store.granularity(partition.level);
        let of_width = |(index, _): &&(GranularityIndex, Form)| {
            store.granularity(*index).width_ms == level.width_ms
        };
        let Some((granularity, form)) = forms.iter().find(of_width).copied() else { continue };
        let collection = format!("{}.{}", store.granularity(granularity).name, partition.name);
        let group = all.entry(collection.clone()).or_insert_with(|| CollectionGroup {
            collection,
            granularity,
            form,
            start: partition.range.start,
            through: 0,
            replaced: 0,
            mark: form.word().to_owned(),
            finished: BTreeMap::new(),
            changed: BTreeMap::new(),
        });
        group.add(&level.name, partition);
    }
    all.into_values().collect()
}

impl CollectionGroup {
    fn add(&mut self, level: &str, partition: &FollowedPartition) {
        let FollowedPartition { through, until, replaced, .. } = partition;
        self.through = self.through.max(*through);
        self.replaced += replaced;
        // Writing to a string cannot fail.
        let _infallible = write!(self.mark, " {level}:{through}:{}:{replaced}", until.0);
        self.finished.extend(partition.finished().map(|span| (span.start, span.end)));
        for (start, series) in &partition.changed {
            let end = partition.end_of(*start);
            add_series(&mut self.changed, (*start, end), series.clone());
        }
    }

    /// Adds all documents whose period is over.
    fn add_all(&mut self) {
        for (start, end) in &self.finished {
            add_series(&mut self.changed, (*start, *end), ChangedSeries::All);
        }
    }
}

fn add_series(
    spans: &mut BTreeMap<UnixMillis, (UnixMillis, ChangedSeries)>,
    (start, end): (UnixMillis, UnixMillis),
    series: ChangedSeries,
) {
    match (spans.get_mut(&start), series) {
        (Some((_, ChangedSeries::Some(known))), ChangedSeries::Some(more)) => known.extend(more),
        (Some((_, ChangedSeries::All)), ChangedSeries::Some(_)) => {}
        (_, series) => {
            spans.insert(start, (end, series));
        }
    }
}

/// The mark of a collection in MongoDB.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownMark {
    text: String,
    /// True when all changes since the mark are known.
    is_followed: bool,
}

/// The work on one database.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    marks: BTreeMap<String, KnownMark>,
    waiting: BTreeMap<String, CollectionGroup>,
}

impl Backlog {
    /// Returns true when no documents wait.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns true when sets of series wait, which need memory.
    pub(super) fn has_sets(&self) -> bool {
        let is_set = |(_, series): &(UnixMillis, ChangedSeries)| *series != ChangedSeries::All;
        self.waiting.values().any(|group| group.changed.values().any(is_set))
    }

    /// Replaces the sets of series of a refused collection by all series: MongoDB may refuse it for
    /// a long time, and sets need memory.
    pub(super) fn widen(&mut self, collection: &str) {
        let group = self.waiting.get_mut(collection);
        for (_, series) in group.into_iter().flat_map(|group| group.changed.values_mut()) {
            *series = ChangedSeries::All;
        }
    }

    /// Notes the marks in MongoDB. When another program changed a mark, its collection is published
    /// again as a whole.
    pub(super) fn note_marks(&mut self, found: BTreeMap<String, String>) {
        let before = std::mem::take(&mut self.marks);
        for (collection, text) in found {
            let known = before.get(&collection);
            let is_followed = known.is_some_and(|known| known.is_followed && known.text == text);
            self.marks.insert(collection, KnownMark { text, is_followed });
        }
        for group in self.waiting.values_mut() {
            let text = |mark: &KnownMark| mark.text.clone();
            let now = self.marks.get(&group.collection).map(text);
            if before.get(&group.collection).map(text) != now {
                group.add_all();
            }
        }
    }

    /// Adds the documents that are not published.
    pub(super) fn add(&mut self, groups: &[CollectionGroup]) {
        for group in groups {
            let mark = self.marks.get_mut(&group.collection);
            let is_equal = mark.as_ref().is_some_and(|mark| mark.text == group.mark);
            let is_followed = mark.as_ref().is_some_and(|mark| mark.is_followed) || is_equal;
            if let Some(mark) = mark {
                mark.is_followed |= is_equal;
            }
            let mut group = group.clone();
            let waiting = self.waiting.remove(&group.collection);
            // A waiting group already contains everything that was not published when it was added.
            if !is_followed && waiting.is_none() {
                group.add_all();
            }
            if is_equal && group.changed.is_empty() && waiting.is_none() {
                continue;
            }
            for (start, (end, series)) in waiting.into_iter().flat_map(|group| group.changed) {
                add_series(&mut group.changed, (start, end), series);
            }
            self.waiting.insert(group.collection.clone(), group);
        }
    }

    /// Returns the names of the waiting collections, the oldest first.
    pub(super) fn names(&self) -> Vec<String> {
        let mut all: Vec<_> =
            self.waiting.values().map(|group| (group.start, group.collection.clone())).collect();
        all.sort();
        all.into_iter().map(|(_, collection)| collection).collect()
    }

    /// Returns the work on a collection.
    pub(super) fn get_mut(&mut self, collection: &str) -> Option<&mut CollectionGroup> {
        self.waiting.get_mut(collection)
    }

    /// Notes that all documents of a collection and its mark are in MongoDB.
    pub(super) fn complete(&mut self, collection: &str) {
        if let Some(group) = self.waiting.remove(collection) {
            let mark = KnownMark { text: group.mark, is_followed: true };
            self.marks.insert(group.collection, mark);
        }
    }

    /// Removes the work on a collection whose partition was dropped. The mark stays.
    pub(super) fn leave(&mut self, collection: &str) {
        self.waiting.remove(collection);
    }

    /// Notes that a collection was dropped.
    pub(super) fn forget(&mut self, collection: &str) {
        self.marks.remove(collection);
        self.waiting.remove(collection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::SeriesId, store::SeriesSet};

    fn group(mark: &str, changed: &[i64]) -> CollectionGroup {
        let (start, end) = (UnixMillis(0), UnixMillis(10));
        let series = ChangedSeries::Some(SeriesSet::default());
        CollectionGroup {
            collection: "1h.a".to_owned(),
            granularity: GranularityIndex(0),
            form: Form::Nested,
            start,
            through: 1,
            replaced: 0,
            mark: mark.to_owned(),
            finished: BTreeMap::from([(start, end), (end, UnixMillis(20))]),
            changed: changed.iter().map(|at| (UnixMillis(*at), (end, series.clone()))).collect(),
        }
    }

    /// Returns the starts of the waiting documents, each with true if the documents of all series
    /// wait.
    fn waiting(backlog: &Backlog) -> Vec<(i64, bool)> {
        let groups = backlog.waiting.values().flat_map(|group| &group.changed);
        groups.map(|(start, (_, series))| (start.0, *series == ChangedSeries::All)).collect()
    }

    fn marks(text: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("1h.a".to_owned(), text.to_owned())])
    }

    #[test]
    fn a_collection_is_published_whole_unless_all_changes_since_its_mark_are_known() {
        let mut backlog = Backlog::default();
        backlog.note_marks(BTreeMap::new());
        backlog.add(&[group("m1", &[])]);
        assert_eq!(waiting(&backlog), [(0, true), (10, true)], "nothing is in MongoDB");
        backlog.complete("1h.a");
        backlog.add(&[group("m1", &[])]);
        assert!(backlog.is_empty());
        backlog.add(&[group("m2", &[10])]);
        assert_eq!(waiting(&backlog), [(10, false)]);
        backlog.complete("1h.a");
        // The connection broke; the mark in MongoDB is still the last one.
        backlog.note_marks(marks("m2"));
        backlog.add(&[group("m3", &[0])]);
        assert_eq!(waiting(&backlog), [(0, false)]);
        backlog.complete("1h.a");
        // The database was restored from a backup, or was lost.
        backlog.note_marks(marks("m1"));
        backlog.add(&[group("m3", &[])]);
        assert_eq!(waiting(&backlog), [(0, true), (10, true)]);
    }

    #[test]
    fn a_start_continues_from_the_mark() {
        let mut backlog = Backlog::default();
        backlog.note_marks(marks("m2"));
        backlog.add(&[group("m2", &[])]);
        assert!(backlog.is_empty(), "everything is published");
        backlog.add(&[group("m3", &[10])]);
        assert_eq!(waiting(&backlog), [(10, false)]);
        let mut backlog = Backlog::default();
        backlog.note_marks(marks("m1"));
        backlog.add(&[group("m2", &[10])]);
        let expected = [(0, true), (10, true)];
        assert_eq!(waiting(&backlog), expected, "the last run wrote more than it published");
    }

    #[test]
    fn a_refused_collection_keeps_its_work_without_sets() {
        let mut backlog = Backlog::default();
        backlog.note_marks(marks("m1"));
        backlog.add(&[group("m1", &[])]);
        backlog.add(&[group("m2", &[0])]);
        assert!(backlog.has_sets());
        backlog.widen("1h.a");
        assert!(!backlog.has_sets());
        backlog.add(&[group("m3", &[10])]);
        assert_eq!(waiting(&backlog), [(0, true), (10, false)]);
        // The mark was removed meanwhile.
        backlog.note_marks(BTreeMap::new());
        assert_eq!(waiting(&backlog), [(0, true), (10, true)]);
    }

    #[test]
    fn series_of_all_writes_are_joined() {
        let mut spans = BTreeMap::new();
        let some = |id: u32| ChangedSeries::Some(SeriesSet::of([SeriesId(id)]));
        let span = (UnixMillis(0), UnixMillis(10));
        add_series(&mut spans, span, some(1));
        add_series(&mut spans, span, some(70));
        let both = ChangedSeries::Some(SeriesSet::of([SeriesId(1), SeriesId(70)]));
        assert_eq!(spans[&UnixMillis(0)].1, both);
        add_series(&mut spans, span, ChangedSeries::All);
        add_series(&mut spans, span, some(2));
        assert_eq!(spans[&UnixMillis(0)].1, ChangedSeries::All);
    }
}
