//! The native histograms of a series at the steps, apart from its numbers.
//!
//! Must never know: the store, the tree. A column without histograms takes no memory, so numbers
//! are calculated as if there were none.

use std::sync::Arc;

use crate::model::Histogram;

/// The histograms of a series at the steps. A step has a number, a histogram, or neither.
#[derive(Debug, Clone, Default)]
pub(crate) struct HistogramColumn(Vec<Option<Arc<Histogram>>>);

impl HistogramColumn {
    /// A column without histograms.
    pub(crate) const NONE: Self = Self(Vec::new());

    /// Creates a column of as many steps as the list has entries.
    pub(crate) fn new(all: Vec<Option<Arc<Histogram>>>) -> Self {
        if all.iter().any(Option::is_some) { Self(all) } else { Self::NONE }
    }

    /// Returns true when no step has a histogram.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Returns the histogram at a step.
    pub(crate) fn get(&self, step: usize) -> Option<&Arc<Histogram>> {
        self.0.get(step)?.as_ref()
    }

    /// Returns true when a step has a histogram.
    pub(crate) fn is_at(&self, step: usize) -> bool {
        self.get(step).is_some()
    }

    /// Returns the histograms with their steps.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Arc<Histogram>)> {
        self.0.iter().enumerate().filter_map(|(step, found)| Some((step, found.as_ref()?)))
    }

    /// Replaces the histogram at a step, in a column of `count` steps.
    pub(crate) fn set(&mut self, step: usize, histogram: Arc<Histogram>, count: usize) {
        self.0.resize(count.max(step + 1), None);
        self.0[step] = Some(histogram);
    }

    /// Removes the histogram at a step.
    pub(crate) fn remove(&mut self, step: usize) {
        if let Some(found) = self.0.get_mut(step) {
            *found = None;
        }
    }

    /// Replaces each histogram by a result, or removes it.
    pub(crate) fn map(
        &mut self,
        mut function: impl FnMut(usize, &Arc<Histogram>) -> Option<Arc<Histogram>>,
    ) {
        for (step, entry) in self.0.iter_mut().enumerate() {
            *entry = entry.take().and_then(|found| function(step, &found));
        }
    }

    /// Repeats the histogram of the first step for several steps.
    pub(crate) fn repeated(mut self, count: usize) -> Self {
        let first = self.0.first_mut().and_then(Option::take);
        first.map_or(Self::NONE, |first| Self(vec![Some(first); count]))
    }

    /// Returns the approximate memory of the column in bytes. Histograms are shared.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.0[..])
    }

    /// Returns the approximate memory of copies of the histograms in bytes.
    pub(crate) fn copied_bytes(&self) -> usize {
        self.iter().map(|(_, histogram)| histogram.bytes()).sum()
    }
}
