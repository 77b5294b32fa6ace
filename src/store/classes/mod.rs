//! Classes of series. Each class has separate levels with separate files, so that retention can
//! drop whole partitions. The first class has the granularities of the settings; every other class
//! belongs to a rule of retention.
//!
//! Must never know: how the rules are stored, and what the levels contain.

pub(crate) mod resolve;
pub(crate) mod series_classes;

use std::ops::Range;

use crate::model::{Granularity, GranularityIndex, GranularitySet, UnixMillis};

/// The number of a class; class 0 has the granularities of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClassIndex(pub(crate) u8);

impl ClassIndex {
    /// The class of all series that no rule selects.
    pub(crate) const DEFAULT: Self = Self(0);
}

/// The levels of a class.
#[derive(Debug, Clone)]
pub(crate) struct Class {
    /// The name; empty for the first class.
    pub(crate) name: String,
    /// The index of the finest level in the store.
    pub(crate) first: usize,
    /// The levels, finest first.
    pub(crate) levels: GranularitySet,
}

impl Class {
    /// Returns the indexes of the levels in the store.
    pub(crate) fn range(&self) -> Range<usize> {
        self.first..self.first + self.levels.count()
    }

    /// Returns the index in the store of a level of the class.
    pub(crate) fn stored(&self, level: GranularityIndex) -> GranularityIndex {
        GranularityIndex(self.first + level.0)
    }

    /// Returns the index in the store of the level with a slot width.
    pub(crate) fn level_of_width(&self, width_ms: i64) -> Option<GranularityIndex> {
        let mut all = self.levels.indexed();
        let (index, _) = all.find(|(_, level)| level.width_ms == width_ms)?;
        Some(self.stored(index))
    }
}

/// All classes. In the store's order of levels, the levels of the first class precede the levels of
/// the next classes; retired granularities are last.
#[derive(Debug, Clone)]
pub(crate) struct Classes {
    all: Vec<Class>,
    /// All levels that accept samples.
    levels: Vec<Granularity>,
}

impl Classes {
    /// Creates the classes: the first class with the granularities of the settings, then the others
    /// with their levels.
    pub(crate) fn new(settings: GranularitySet, others: Vec<(String, GranularitySet)>) -> Self {
        let mut this = Self { all: Vec::new(), levels: Vec::new() };
        for (name, levels) in std::iter::once((String::new(), settings)).chain(others) {
            let first = this.levels.len();
            this.levels.extend(levels.iter().cloned());
            this.all.push(Class { name, first, levels });
        }
        this
    }

    /// Returns all classes, in order.
    pub(crate) fn all(&self) -> &[Class] {
        &self.all
    }

    /// Returns a class.
    pub(crate) fn get(&self, class: ClassIndex) -> &Class {
        &self.all[usize::from(class.0)]
    }

    /// Returns the class with a name, if it has levels.
    pub(crate) fn named(&self, name: &str) -> Option<ClassIndex> {
        let position = self.all.iter().position(|class| class.name == name)?;
        Some(ClassIndex(position as u8))
    }

    /// Returns all levels that accept samples, in the order of their indexes in the store.
    pub(crate) fn levels(&self) -> &[Granularity] {
        &self.levels
    }

    /// Returns the indexes of all levels that accept samples.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = GranularityIndex> + use<> {
        (0..self.levels.len()).map(GranularityIndex)
    }

    /// Returns the class of a level that accepts samples.
    pub(crate) fn of_level(&self, level: GranularityIndex) -> Option<&Class> {
        self.all.iter().find(|class| class.range().contains(&level.0))
    }

    /// Returns the indexes of a level and of the finer levels of its class.
    pub(crate) fn up_to(&self, level: GranularityIndex) -> Range<usize> {
        let first = self.of_level(level).map_or(level.0, |class| class.first);
        first..level.0 + 1
    }

    /// Returns the number of coarser levels of the same class.
    pub(crate) fn coarser_count(&self, level: GranularityIndex) -> usize {
        self.of_level(level).map_or(0, |class| class.range().end - level.0 - 1)
    }

    /// Returns the next finer level of the same class.
    pub(crate) fn finer(&self, level: GranularityIndex) -> Option<GranularityIndex> {
        self.up_to(level).rev().nth(1).map(GranularityIndex)
    }

    /// Returns the next coarser level of the same class.
    pub(crate) fn coarser(&self, level: GranularityIndex) -> Option<GranularityIndex> {
        let class = self.of_level(level)?;
        let next = level.coarser();
        class.range().contains(&next.0).then_some(next)
    }
}

/// The class of a series in a time range, with the levels of the class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassSpan {
    /// The times of the samples.
    pub times: Range<UnixMillis>,
    /// The name of the class; empty for the granularities of the settings.
    pub name: String,
    /// The levels with their indexes in the store, finest first.
    pub levels: Vec<(GranularityIndex, Granularity)>,
}
