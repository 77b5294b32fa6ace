//! The number of series of each class. Series are counted once, not at each request.
//!
//! Must never know: the use of the numbers.

use std::{collections::BTreeMap, ops::Range};

use super::Store;
use crate::{
    model::{SeriesId, UnixMillis},
    store::classes::{ClassIndex, resolve::rule_name},
};

/// The number of series that are visited under a lock of the dictionary, and of the catalog.
const SERIES_AT_ONCE: usize = 16_384;

/// The series that are not deleted, by the history of their classes.
#[derive(Debug, Default)]
pub(crate) struct ClassCounts {
    /// The number of ids that were counted.
    ids: usize,
    /// The generation of the dictionary in which they were counted: another one may have deleted
    /// some of them.
    generation: u64,
    by_history: BTreeMap<u32, usize>,
}

impl ClassCounts {
    /// Counts the series that were defined since the last call, and all after a change of series.
    fn update(&mut self, store: &Store) {
        let dictionary = store.all_series();
        let (generation, ids) = (dictionary.generation(), dictionary.id_count());
        drop(dictionary);
        if self.generation != generation {
            *self = Self { generation, ..Self::default() };
        }
        for first in (self.ids..ids).step_by(SERIES_AT_ONCE) {
            let chunk = (first..ids.min(first + SERIES_AT_ONCE)).map(|id| SeriesId(id as u32));
            let dictionary = store.all_series();
            let living: Vec<_> = chunk.filter(|id| dictionary.key(*id).is_some()).collect();
            drop(dictionary);
            let catalog = store.inner.catalog.read();
            let classes = catalog.series_classes();
            for history in living.iter().filter_map(|id| classes.history_of(*id)) {
                *self.by_history.entry(history).or_default() += 1;
            }
        }
        self.ids = ids;
    }
}

impl Store {
    /// Returns how many series have samples of each class in a range of time, in the order of
    /// [`Self::classes`]. A series counts for each class that it has in this range.
    pub fn series_by_class(&self, range: Range<UnixMillis>) -> Vec<usize> {
        let mut totals = vec![0; self.inner.classes.all().len()];
        if !self.has_classes() {
            totals[usize::from(ClassIndex::DEFAULT.0)] = self.all_series().len();
            return totals;
        }
        let mut counts = self.inner.class_counts.lock();
        counts.update(self);
        let catalog = self.inner.catalog.read();
        for (history, count) in &counts.by_history {
            let mut classes: Vec<_> = catalog
                .series_classes()
                .classes_within(*history, &(range.start.0..range.end.0))
                .collect();
            classes.sort_unstable();
            classes.dedup();
            for class in classes {
                totals[usize::from(class.0)] += count;
            }
        }
        totals
    }

    /// Returns the rules of retention that apply at a time, by name, each with the number of its
    /// series; rules without series are missing.
    pub fn series_by_rule(&self, at: UnixMillis) -> Vec<(String, usize)> {
        let counts = self.series_by_class(at..at.plus(1));
        let classes = self.inner.classes.all().iter().zip(counts).skip(1);
        let with_series = classes.filter(|(_, count)| *count > 0);
        with_series.map(|(class, count)| (rule_name(&class.name).to_owned(), count)).collect()
    }
}
