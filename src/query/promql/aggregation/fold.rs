//! Aggregations that process one value after another, series by series, such as sums.
//!
//! Must never know: the store, how series were grouped.

use super::{
    Aggregator,
    groups::{GroupLabels, Groups},
};
use crate::query::QueryError;
use crate::query::promql::{
    context::{Context, bounds::KeptMemory},
    syntax::tree::Grouping,
    value::{
        numbers::{Mean, Sum},
        series::{ABSENT, Series, is_present},
    },
};

/// An aggregation of each group to one series. The memory is that of its result, unless the
/// aggregation needs all values.
pub(super) struct FoldedGroups<'a, F> {
    groups: Groups<'a>,
    /// The state of each group at each time.
    states: Vec<Vec<Option<F>>>,
    /// Number of values of the input, with absent values.
    values: usize,
    result: ResultOf<'a, F>,
    context: &'a Context<'a>,
    memory: KeptMemory<'a>,
}

/// A function that returns the value of a state at a time.
type ResultOf<'a, F> = Box<dyn Fn(usize, F) -> f64 + 'a>;

impl<'a, F: Fold> FoldedGroups<'a, F> {
    pub(super) fn new(
        grouping: Option<&'a Grouping>,
        context: &'a Context<'a>,
        result: impl Fn(usize, F) -> f64 + 'a,
    ) -> Self {
        let (groups, result) = (Groups::new(grouping), Box::new(result));
        let memory = context.bounds.keep();
        Self { groups, states: Vec::new(), values: 0, result, context, memory }
    }

    /// Adds the values of a part of the input.
    pub(super) fn add_all(&mut self, series: &[Series]) -> Result<(), QueryError> {
        let steps = self.context.steps.count;
        for entry in series {
            self.values += steps;
            for (state, value) in self.states_of(entry)?.iter_mut().zip(&entry.values) {
                if is_present(*value) {
                    match state {
                        Some(state) => state.update(*value),
                        None => *state = Some(F::from_first(*value)),
                    }
                }
            }
        }
        self.resize(self.states.len())
    }

    /// Reserves the memory of a number of groups and of the values so far.
    fn resize(&mut self, groups: usize) -> Result<(), QueryError> {
        if F::VALUE_BYTES > 0 {
            self.context.bounds.check_held_values(self.values)?;
        }
        let states = groups * self.context.steps.count * size_of::<Option<F>>();
        self.memory.resize(self.groups.bytes + states + self.values * F::VALUE_BYTES)
    }

    /// Returns the position of a series' group, which exists once the series was added.
    pub(super) fn position_of(&mut self, series: &Series) -> usize {
        self.groups.position_of(series)
    }

    /// Returns the states of a series' group, which is created if it is missing.
    pub(super) fn states_of(&mut self, series: &Series) -> Result<&mut [Option<F>], QueryError> {
        let position = self.groups.position_of(series);
        if position == self.states.len() {
            self.context.bounds.check_time()?;
            self.resize(self.states.len() + 1)?;
            let mut states = Vec::new();
            states.resize_with(self.context.steps.count, || None);
            self.states.push(states);
        }
        Ok(&mut self.states[position])
    }

    /// Returns whether each group drops the metric's name, and the states of the group.
    pub(super) fn into_states(self) -> impl Iterator<Item = (bool, Vec<Option<F>>)> {
        let drops = self.groups.all.into_iter().map(|group| group.drop_metric);
        drops.zip(self.states)
    }

    /// Returns a series for each group.
    pub(super) fn into_series(self) -> Result<Vec<Series>, QueryError> {
        let (result, bounds) = (self.result, self.context.bounds);
        let mut value = |(step, state): (usize, Option<F>)| {
            if F::VALUE_BYTES > 0 {
                // The result takes time for each value of the group.
                bounds.check_time()?;
            }
            Ok(state.map_or(ABSENT, |state| result(step, state)))
        };
        let aggregated = |(group, states): (GroupLabels, Vec<Option<F>>)| {
            let values = states.into_iter().enumerate().map(&mut value);
            let values = values.collect::<Result<_, QueryError>>()?;
            Ok(Series::new(group.labels, group.drop_metric, values))
        };
        self.groups.all.into_iter().zip(self.states).map(aggregated).collect()
    }
}

impl<F: Fold> Aggregator for FoldedGroups<'_, F> {
    fn add(&mut self, series: Vec<Series>) -> Result<(), QueryError> {
        self.add_all(&series)
    }

    fn series_count(&self) -> usize {
        self.states.len()
    }

    fn finish(self: Box<Self>) -> Result<Vec<Series>, QueryError> {
        let mut series = self.into_series()?;
        series.retain(Series::has_values);
        Ok(series)
    }
}

/// An aggregation that processes one value after another.
pub(super) trait Fold {
    /// Memory that each value adds to a state.
    const VALUE_BYTES: usize = 0;

    fn from_first(value: f64) -> Self;
    fn update(&mut self, value: f64);
}

impl Fold for Sum {
    fn from_first(value: f64) -> Self {
        let mut sum = Self::default();
        sum.add(value);
        sum
    }
    fn update(&mut self, value: f64) {
        self.add(value);
    }
}

impl Fold for Mean {
    fn from_first(value: f64) -> Self {
        let mut mean = Self::default();
        mean.add(value);
        mean
    }
    fn update(&mut self, value: f64) {
        self.add(value);
    }
}

pub(super) struct MemberCount(pub(super) f64);

impl Fold for MemberCount {
    fn from_first(_: f64) -> Self {
        Self(1.0)
    }
    fn update(&mut self, _: f64) {
        self.0 += 1.0;
    }
}

pub(super) struct Presence;

impl Fold for Presence {
    fn from_first(_: f64) -> Self {
        Self
    }
    fn update(&mut self, _: f64) {}
}

pub(super) struct Minimum(pub(super) f64);

impl Fold for Minimum {
    fn from_first(value: f64) -> Self {
        Self(value)
    }
    fn update(&mut self, value: f64) {
        if value < self.0 || self.0.is_nan() {
            self.0 = value;
        }
    }
}

pub(super) struct Maximum(pub(super) f64);

impl Fold for Maximum {
    fn from_first(value: f64) -> Self {
        Self(value)
    }
    fn update(&mut self, value: f64) {
        if value > self.0 || self.0.is_nan() {
            self.0 = value;
        }
    }
}

/// The population variance, without compensation, as in Prometheus' aggregation.
pub(super) struct PopulationVariance {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Fold for PopulationVariance {
    fn from_first(value: f64) -> Self {
        let squares = if value.is_finite() { 0.0 } else { f64::NAN };
        Self { count: 1.0, mean: value, squares }
    }
    fn update(&mut self, value: f64) {
        self.count += 1.0;
        let delta = value - self.mean;
        self.mean += delta / self.count;
        self.squares += delta * (value - self.mean);
    }
}

impl PopulationVariance {
    pub(super) fn variance(&self) -> f64 {
        self.squares / self.count
    }
}
