//! The classes of series, for queries: the levels at which samples of some series are kept.
//!
//! Must never know: the use of the levels.

use std::collections::BTreeSet;

use super::Store;
use crate::{
    model::{Granularity, GranularityIndex, GranularitySet, SeriesId, UnixMillis},
    store::{
        catalog::Catalog,
        classes::{ClassIndex, ClassSpan, resolve::rule_name},
    },
};

/// The number of series that are visited under a lock of the catalog.
const SERIES_AT_ONCE: usize = 16_384;

impl Store {
    /// Returns the levels that accept samples: the granularities of the settings, then the levels
    /// of other classes.
    pub fn levels(&self) -> &[Granularity] {
        self.inner.classes.levels()
    }

    /// Returns the rule of each class, which is empty for the granularities of the settings, with
    /// the levels of the class.
    pub fn classes(&self) -> impl Iterator<Item = (&str, &GranularitySet)> {
        self.inner.classes.all().iter().map(|class| (rule_name(&class.name), &class.levels))
    }

    /// Returns the position in [`Self::classes`] of the class that keeps a series' samples of a
    /// time.
    pub fn class_at(&self, series: SeriesId, at: UnixMillis) -> usize {
        usize::from(self.inner.catalog.read().series_classes().at(series, at).0)
    }

    /// Returns true when some series may be kept at other levels than the granularities of the
    /// settings.
    pub fn has_classes(&self) -> bool {
        !self.inner.rules.is_empty()
    }

    /// Returns the classes of series and of their parts over time, without repetitions: each is a
    /// list of spans, ascending, for some of the series. Empty when all of the series are only in
    /// the class of the settings' granularities.
    pub fn class_spans(&self, series: &[SeriesId]) -> Vec<Vec<ClassSpan>> {
        if !self.has_classes() {
            return Vec::new();
        }
        let mut all = series.to_vec();
        let dictionary = self.all_series();
        if dictionary.has_parts() {
            all.extend(series.iter().flat_map(|id| dictionary.parts(*id)));
        }
        drop(dictionary);
        let mut histories = BTreeSet::new();
        for chunk in all.chunks(SERIES_AT_ONCE) {
            let catalog = self.inner.catalog.read();
            let classes = catalog.series_classes();
            histories.extend(chunk.iter().filter_map(|id| classes.history_of(*id)));
        }
        let catalog = self.inner.catalog.read();
        let found: Vec<_> =
            histories.into_iter().map(|history| self.spans_of(&catalog, history)).collect();
        drop(catalog);
        let is_default = |spans: &Vec<ClassSpan>| spans.iter().all(|span| span.name.is_empty());
        if found.iter().all(is_default) { Vec::new() } else { found }
    }

    fn spans_of(&self, catalog: &Catalog, history: u32) -> Vec<ClassSpan> {
        let mut spans: Vec<ClassSpan> = Vec::new();
        for (from, class) in catalog.series_classes().epochs_of(history) {
            let class = self.inner.classes.get(class);
            match spans.last_mut() {
                Some(last) if last.name == class.name => {}
                last => {
                    if let Some(last) = last {
                        last.times.end = from;
                    }
                    let levels = class.levels.indexed();
                    let levels = levels.map(|(index, level)| (class.stored(index), level.clone()));
                    spans.push(ClassSpan {
                        times: from..UnixMillis::LATEST,
                        name: class.name.clone(),
                        levels: levels.collect(),
                    });
                }
            }
        }
        spans.retain(|span| !span.times.is_empty());
        spans
    }

    /// Returns the level of the same slot width as `asked` at which the samples of a series of a
    /// time are kept; `None` when its class omits the width.
    pub fn level_of(
        &self,
        asked: GranularityIndex,
        series: SeriesId,
        at: UnixMillis,
    ) -> Option<GranularityIndex> {
        let class = self.inner.catalog.read().series_classes().at(series, at);
        self.level_in(asked, class)
    }

    /// Returns the level of a class with the slot width of `asked`. The first class has `asked`
    /// itself, which may be retired.
    pub(crate) fn level_in(
        &self,
        asked: GranularityIndex,
        class: ClassIndex,
    ) -> Option<GranularityIndex> {
        if class == ClassIndex::DEFAULT {
            return Some(asked);
        }
        self.inner.classes.get(class).level_of_width(self.granularity(asked).width_ms)
    }

    /// Returns how many of the series are kept at a granularity, or at a level of its width, at a
    /// time.
    pub fn count_kept(
        &self,
        asked: GranularityIndex,
        at: UnixMillis,
        series: &[SeriesId],
    ) -> usize {
        self.by_level(asked, at, series).iter().map(|(_, ids)| ids.len()).sum()
    }

    /// Groups series by the level at which their samples of a time are kept.
    pub(crate) fn by_level(
        &self,
        asked: GranularityIndex,
        at: UnixMillis,
        series: &[SeriesId],
    ) -> Vec<(GranularityIndex, Vec<SeriesId>)> {
        if !self.has_classes() {
            return vec![(asked, series.to_vec())];
        }
        let mut groups: Vec<(GranularityIndex, Vec<SeriesId>)> = Vec::new();
        for chunk in series.chunks(SERIES_AT_ONCE) {
            let catalog = self.inner.catalog.read();
            for id in chunk {
                let class = catalog.series_classes().at(*id, at);
                let Some(level) = self.level_in(asked, class) else { continue };
                match groups.iter_mut().find(|(known, _)| *known == level) {
                    Some((_, ids)) => ids.push(*id),
                    None => groups.push((level, vec![*id])),
                }
            }
        }
        groups
    }
}
