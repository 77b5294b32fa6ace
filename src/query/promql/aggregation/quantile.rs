//! `quantile`, an aggregation that needs all values of a group at a time.
//!
//! The values of the input stay in memory, without their labels and cells. Must never know: the
//! store, the tree.

use super::{
    Aggregator,
    fold::{Fold, FoldedGroups},
};
use crate::query::QueryError;
use crate::query::promql::{
    context::Context,
    syntax::tree::Grouping,
    value::{annotations::Notes, numbers::quantile, series::Series},
};

/// The quantile of each group at each time.
pub(super) struct Quantile<'a> {
    values: FoldedGroups<'a, Values>,
    quantiles: Vec<f64>,
    notes: Notes<'a>,
}

impl<'a> Quantile<'a> {
    pub(super) fn new(
        quantiles: Vec<f64>,
        grouping: Option<&'a Grouping>,
        context: &'a Context<'a>,
    ) -> Self {
        let at_step = quantiles.clone();
        let values = FoldedGroups::new(grouping, context, move |step, Values(mut values)| {
            quantile(at_step[step], &mut values)
        });
        Self { values, quantiles, notes: context.notes.at_argument(0) }
    }
}

impl Aggregator for Quantile<'_> {
    fn add(&mut self, series: Vec<Series>) -> Result<(), QueryError> {
        self.values.add_all(&series)
    }

    fn series_count(&self) -> usize {
        self.values.series_count()
    }

    fn finish(self: Box<Self>) -> Result<Vec<Series>, QueryError> {
        let Self { values, quantiles, notes } = *self;
        notes.check_quantiles(&quantiles);
        values.into_series()
    }
}

/// The values of a group at one time, in the order of its series.
struct Values(Vec<f64>);

impl Fold for Values {
    /// A growing list may have twice the memory of its values.
    const VALUE_BYTES: usize = 2 * size_of::<f64>();

    fn from_first(value: f64) -> Self {
        Self(vec![value])
    }
    fn update(&mut self, value: f64) {
        self.0.push(value);
    }
}
