//! The class of each series in each epoch of the rules.
//!
//! A series belongs to the classes that the rules select for its original key. Renaming a series
//! changes no class; otherwise, earlier records and files would belong to another class. Series
//! with the same classes share one list of classes. Must never know: cells.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
    sync::Arc,
};

use foldhash::fast::FixedState;

use super::{ClassIndex, Classes};
use crate::{
    model::{
        KeySelector, PROJECT_TAG, SeriesId, SeriesKey, TagComparison, UnixMillis, split_stored_name,
    },
    store::journal::epoch_row::Epoch,
};

/// The classes of a series, by epoch.
pub(crate) type History = Box<[ClassIndex]>;

/// The rules of all epochs.
#[derive(Debug, Default)]
pub(crate) struct RuleBook {
    epochs: Vec<Vec<(ClassIndex, KeySelector)>>,
}

impl RuleBook {
    /// Returns the rules of the epochs. A class without levels counts as the first class.
    pub(crate) fn new(epochs: &[Epoch], classes: &Classes) -> Self {
        let rules = |epoch: &Epoch| {
            let rules = epoch.rules.iter().map(|rule| {
                let class = classes.named(&rule.class).unwrap_or(ClassIndex::DEFAULT);
                (class, rule.selector.clone())
            });
            rules.collect()
        };
        Self { epochs: epochs.iter().map(rules).collect() }
    }

    /// Returns true when no epoch has a rule: all series are in the first class.
    pub(crate) fn is_empty(&self) -> bool {
        self.epochs.iter().all(Vec::is_empty)
    }

    /// Returns the class of each rule of the last epoch.
    pub(crate) fn last_classes(&self) -> impl Iterator<Item = ClassIndex> {
        self.epochs.last().into_iter().flatten().map(|(class, _)| *class)
    }

    /// Returns the classes of which all rules name a project.
    pub(crate) fn classes_of(&self, project: &str) -> BTreeSet<ClassIndex> {
        let names = |selector: &KeySelector| {
            selector.matchers().iter().any(|matcher| {
                matcher.tag == PROJECT_TAG
                    && matcher.comparison == TagComparison::Equal
                    && matcher.value == project
            })
        };
        let rules = || self.epochs.iter().flatten();
        let others: BTreeSet<_> =
            rules().filter(|(_, selector)| !names(selector)).map(|(class, _)| *class).collect();
        let own = rules().map(|(class, _)| *class).filter(|class| !others.contains(class));
        own.filter(|class| *class != ClassIndex::DEFAULT).collect()
    }

    /// Returns the classes of a series that a sender, by its stored name, defined with a key.
    pub(crate) fn history(&self, sender: &str, key: &SeriesKey) -> History {
        let (project, _) = split_stored_name(sender);
        let class = |rules: &Vec<(ClassIndex, KeySelector)>| {
            let found = rules.iter().find(|(_, selector)| selector.selects(project, key));
            found.map_or(ClassIndex::DEFAULT, |(class, _)| *class)
        };
        self.epochs.iter().map(class).collect()
    }
}

/// The classes of all series; nothing is stored while no epoch has a rule.
#[derive(Debug)]
pub(crate) struct SeriesClasses {
    rules: Arc<RuleBook>,
    /// The start of each epoch, ascending.
    starts: Vec<UnixMillis>,
    histories: Vec<History>,
    /// The position of each history.
    positions: HashMap<History, u32, FixedState>,
    of_series: Vec<u32>,
}

impl SeriesClasses {
    /// Returns the classes without any series.
    pub(crate) fn new(epochs: &[Epoch], classes: &Classes) -> Self {
        Self {
            rules: Arc::new(RuleBook::new(epochs, classes)),
            starts: epochs.iter().map(|epoch| epoch.from).collect(),
            histories: Vec::new(),
            positions: HashMap::default(),
            of_series: Vec::new(),
        }
    }

    /// Returns the rules.
    pub(crate) fn rules(&self) -> &Arc<RuleBook> {
        &self.rules
    }

    /// Sets the start of the last epoch, which no sample has reached yet.
    pub(crate) fn begin_last(&mut self, from: UnixMillis) {
        if let Some(last) = self.starts.last_mut() {
            *last = from;
        }
    }

    /// Adds the next series; `None` stands for a series whose key is unknown.
    pub(crate) fn add(&mut self, history: Option<History>) {
        if self.rules.is_empty() {
            return;
        }
        let default = || vec![ClassIndex::DEFAULT; self.starts.len()].into_boxed_slice();
        let history = history.unwrap_or_else(default);
        let next = self.histories.len() as u32;
        let position = *self.positions.entry(history).or_insert_with_key(|history| {
            self.histories.push(history.clone());
            next
        });
        self.of_series.push(position);
    }

    /// Returns the class of a series' samples at a time.
    #[inline]
    pub(crate) fn at(&self, series: SeriesId, at: UnixMillis) -> ClassIndex {
        match self.of_series.get(series.0 as usize) {
            None => ClassIndex::DEFAULT,
            Some(position) => self.histories[*position as usize][self.epoch(at)],
        }
    }

    fn epoch(&self, at: UnixMillis) -> usize {
        let last = self.starts.len() - 1;
        if self.starts[last] <= at {
            return last;
        }
        self.starts.partition_point(|start| *start <= at).saturating_sub(1)
    }

    /// Returns the classes of a series in a range of time; a class may occur several times.
    pub(crate) fn within(
        &self,
        series: SeriesId,
        range: &Range<i64>,
    ) -> impl Iterator<Item = ClassIndex> {
        let history = self.history_of(series).map(|history| self.classes_within(history, range));
        let default = history.is_none().then_some(ClassIndex::DEFAULT);
        history.into_iter().flatten().chain(default)
    }

    /// Returns the classes of a history in a range of time; a class may occur several times.
    pub(crate) fn classes_within(
        &self,
        history: u32,
        range: &Range<i64>,
    ) -> impl Iterator<Item = ClassIndex> {
        let (first, last) = (UnixMillis(range.start), UnixMillis(range.end.saturating_sub(1)));
        let first = self.epoch(first);
        let epochs = first..=self.epoch(last).max(first);
        self.histories[history as usize][epochs].iter().copied()
    }

    /// Returns the number of the history of a series. Series with equal classes have the same
    /// number. `None` while all series are in the first class.
    pub(crate) fn history_of(&self, series: SeriesId) -> Option<u32> {
        self.of_series.get(series.0 as usize).copied()
    }

    /// Returns the number of series of each class that keeps some of their samples in a range.
    pub(crate) fn count_within(&self, series: &[SeriesId], range: &Range<UnixMillis>) -> Vec<u64> {
        let mut counts = vec![0; usize::from(u8::MAX) + 1];
        for id in series {
            let classes = match self.history_of(*id) {
                None => &[ClassIndex::DEFAULT][..],
                Some(position) => {
                    let epochs = self.epoch(range.start)..=self.epoch(range.end.minus(1));
                    &self.histories[position as usize][epochs]
                }
            };
            for class in classes.iter().collect::<BTreeSet<_>>() {
                counts[usize::from(class.0)] += 1;
            }
        }
        counts
    }

    /// Returns the start of each epoch, with the class of a history in it.
    pub(crate) fn epochs_of(
        &self,
        history: u32,
    ) -> impl DoubleEndedIterator<Item = (UnixMillis, ClassIndex)> {
        self.starts.iter().copied().zip(self.histories[history as usize].iter().copied())
    }

    /// Returns the approximate bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.of_series[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{GranularitySet, METRIC_TAG, SeriesLimits, TagComparison, TagMatcher},
        store::journal::epoch_row::StoredRule,
    };

    #[test]
    fn the_first_match_of_the_epoch_of_a_sample_decides() {
        let rule = |class: &str, pattern: &str| {
            let matcher = TagMatcher {
                tag: METRIC_TAG.to_owned(),
                comparison: TagComparison::Pattern,
                value: pattern.to_owned(),
            };
            let selector = KeySelector::new(vec![matcher]).unwrap();
            StoredRule { class: class.to_owned(), selector }
        };
        let set = GranularitySet::default;
        let others = ["a", "b"].map(|name| (name.to_owned(), set()));
        let classes = Classes::new(set(), others.to_vec());
        let epochs = [
            Epoch::WITHOUT_RULES,
            Epoch { from: UnixMillis(100), rules: vec![rule("a", "x.*"), rule("b", ".*1")] },
            Epoch { from: UnixMillis(200), rules: vec![rule("gone", "x1"), rule("b", "x.*")] },
        ];
        let mut series = SeriesClasses::new(&epochs, &classes);
        let book = series.rules().clone();
        for metric in ["x1", "y1", "x2", "y2"] {
            let key = SeriesKey::new(metric, [], &SeriesLimits::default()).unwrap();
            series.add(Some(book.history("web1", &key)));
        }
        series.add(None);
        let at = |time: i64| [0, 1, 2, 3, 4].map(|id| series.at(SeriesId(id), UnixMillis(time)).0);
        assert_eq!(at(99), [0; 5]);
        assert_eq!(at(100), [1, 2, 1, 0, 0]);
        assert_eq!(at(199), [1, 2, 1, 0, 0]);
        assert_eq!(at(200), [0, 0, 2, 0, 0]);
        assert_eq!(series.history_of(SeriesId(3)), series.history_of(SeriesId(4)));
        assert!(SeriesClasses::new(&epochs[..1], &classes).rules().is_empty());
    }
}
