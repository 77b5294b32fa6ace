//! Native histograms in aggregations: sums and averages, and what other aggregations do with them.
//!
//! Must never know: the store, the tree.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Aggregator,
    fold::{Fold, FoldedGroups},
};
use crate::query::promql::{
    context::{Context, bounds::KeptMemory},
    syntax::operator::Aggregation,
    value::{
        annotations::Notes,
        histograms::{HistogramColumn, HistogramSum},
        series::{ABSENT, Series, is_present},
    },
};
use crate::{model::Histogram, query::QueryError};

/// An aggregation that counts histograms as numbers, or ignores them with an info.
pub(super) struct OfNumbers<'a> {
    inner: Box<dyn Aggregator + 'a>,
    operation: Aggregation,
    notes: Notes<'a>,
}

impl<'a> OfNumbers<'a> {
    /// Wraps an aggregation; `notes` name the location of its input.
    pub(super) fn new(
        operation: Aggregation,
        inner: Box<dyn Aggregator + 'a>,
        notes: Notes<'a>,
    ) -> Self {
        Self { inner, operation, notes }
    }

    /// Replaces the histograms of a series.
    fn replace(&self, entry: &mut Series) {
        let histograms = std::mem::replace(&mut entry.histograms, HistogramColumn::NONE);
        for (step, _) in histograms.iter() {
            if matches!(self.operation, Aggregation::Count | Aggregation::Group) {
                entry.values[step] = 1.0;
            } else {
                self.notes.inform(|| {
                    format!("ignored histogram in {} aggregation", self.operation.name())
                });
            }
        }
    }
}

impl Aggregator for OfNumbers<'_> {
    fn add(&mut self, mut series: Vec<Series>) -> Result<(), QueryError> {
        let is_mixed = |entry: &Series| !entry.histograms.is_empty();
        if series.iter().any(is_mixed) {
            for entry in series.iter_mut().filter(|entry| is_mixed(entry)) {
                self.replace(entry);
            }
            series.retain(Series::has_values);
        }
        self.inner.add(series)
    }

    fn series_count(&self) -> usize {
        self.inner.series_count()
    }

    fn finish(self: Box<Self>) -> Result<Vec<Series>, QueryError> {
        self.inner.finish()
    }
}

/// The sum of the histograms of a group at one time.
struct GroupSum {
    sum: HistogramSum,
    count: f64,
    /// True when the buckets could not be added.
    is_incompatible: bool,
}

/// `sum` or `avg` of numbers and histograms. A group with both has no result.
pub(super) struct SumOfBoth<'a, F> {
    numbers: FoldedGroups<'a, F>,
    /// The sums by group and time.
    sums: BTreeMap<(usize, usize), GroupSum>,
    /// Memory of the sums in bytes.
    sums_bytes: usize,
    is_average: bool,
    notes: Notes<'a>,
    context: &'a Context<'a>,
    memory: KeptMemory<'a>,
}

impl<'a, F: Fold> SumOfBoth<'a, F> {
    /// Wraps an aggregation of numbers; `notes` name the location of its input.
    pub(super) fn new(
        numbers: FoldedGroups<'a, F>,
        is_average: bool,
        notes: Notes<'a>,
        context: &'a Context<'a>,
    ) -> Self {
        let memory = context.bounds.keep();
        Self { numbers, sums: BTreeMap::new(), sums_bytes: 0, is_average, notes, context, memory }
    }

    fn add_histograms(&mut self, entry: &Series) -> Result<(), QueryError> {
        self.context.bounds.check_time()?;
        let group = self.numbers.position_of(entry);
        for (step, histogram) in entry.histograms.iter() {
            let Some(state) = self.sums.get_mut(&(group, step)) else {
                let sum = if self.is_average {
                    HistogramSum::for_average(histogram)
                } else {
                    HistogramSum::new(histogram)
                };
                let is_incompatible = false;
                self.sums_bytes += sum.bytes() + size_of::<GroupSum>();
                self.sums.insert((group, step), GroupSum { sum, count: 1.0, is_incompatible });
                continue;
            };
            state.count += 1.0;
            let bytes_before = state.sum.bytes();
            if !state.is_incompatible && state.sum.add(histogram).is_err() {
                state.is_incompatible = true;
                self.notes.warn_of_mixed_buckets(entry.labels.metric());
            }
            self.sums_bytes = self.sums_bytes + state.sum.bytes() - bytes_before;
        }
        self.memory.resize(self.sums_bytes)
    }

    fn result(&self, state: &GroupSum) -> Histogram {
        if state.sum.has_conflict() {
            self.notes.warn_of_reset_conflict("aggregation");
        }
        if state.sum.reconciled {
            self.notes.inform_of_reconciled_bounds("aggregation");
        }
        if self.is_average { state.sum.average(state.count) } else { state.sum.total() }
    }
}

impl<F: Fold> Aggregator for SumOfBoth<'_, F> {
    fn add(&mut self, series: Vec<Series>) -> Result<(), QueryError> {
        self.numbers.add_all(&series)?;
        for entry in series.iter().filter(|entry| !entry.histograms.is_empty()) {
            self.add_histograms(entry)?;
        }
        Ok(())
    }

    fn series_count(&self) -> usize {
        self.numbers.series_count()
    }

    fn finish(self: Box<Self>) -> Result<Vec<Series>, QueryError> {
        let mut results = BTreeMap::new();
        for (at, state) in &self.sums {
            self.context.bounds.check_time()?;
            let result = (!state.is_incompatible).then(|| self.result(state));
            self.context.bounds.reserve(result.as_ref().map_or(0, Histogram::bytes))?;
            results.insert(*at, result);
        }
        let (count, notes) = (self.context.steps.count, self.notes);
        let mut series = self.numbers.into_series()?;
        for ((group, step), result) in results {
            let entry = &mut series[group];
            if is_present(entry.values[step]) {
                entry.values[step] = ABSENT;
                notes.warn(|| {
                    "encountered a mix of histograms and floats for aggregation".to_owned()
                });
            } else if let Some(histogram) = result {
                entry.histograms.set(step, Arc::new(histogram), count);
            }
        }
        series.retain(Series::has_values);
        Ok(series)
    }
}
