//! Aggregations that process one value after another, series by series, such as sums.
//!
//! Must never know: the store, how series were grouped.

use super::groups::SeriesGroup;
use crate::query::promql::value::{
    numbers::{Mean, Sum},
    series::{ABSENT, Series, is_present},
    steps::Steps,
};

/// Aggregates each group to one series.
pub(super) fn fold_groups<F: Fold>(
    input: &[Series],
    groups: Vec<SeriesGroup>,
    steps: &Steps,
) -> Vec<Series> {
    let aggregated = |group: SeriesGroup| Series {
        values: fold_group::<F>(&group.members, input, steps),
        labels: group.labels,
        drop_metric: group.drop_metric,
    };
    groups.into_iter().map(aggregated).filter(Series::has_values).collect()
}

fn fold_group<F: Fold>(members: &[usize], input: &[Series], steps: &Steps) -> Vec<f64> {
    let mut states: Vec<Option<F>> = Vec::new();
    states.resize_with(steps.count, || None);
    for index in members {
        for (state, value) in states.iter_mut().zip(&input[*index].values) {
            if is_present(*value) {
                match state {
                    Some(state) => state.update(*value),
                    None => *state = Some(F::from_first(*value)),
                }
            }
        }
    }
    states.into_iter().map(|state| state.map_or(ABSENT, Fold::result)).collect()
}

/// An aggregation that processes one value after another.
pub(super) trait Fold {
    fn from_first(value: f64) -> Self;
    fn update(&mut self, value: f64);
    fn result(self) -> f64;
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
    fn result(self) -> f64 {
        self.total()
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
    fn result(self) -> f64 {
        self.mean()
    }
}

pub(super) struct MemberCount(f64);

impl Fold for MemberCount {
    fn from_first(_: f64) -> Self {
        Self(1.0)
    }
    fn update(&mut self, _: f64) {
        self.0 += 1.0;
    }
    fn result(self) -> f64 {
        self.0
    }
}

pub(super) struct Presence;

impl Fold for Presence {
    fn from_first(_: f64) -> Self {
        Self
    }
    fn update(&mut self, _: f64) {}
    fn result(self) -> f64 {
        1.0
    }
}

pub(super) struct Minimum(f64);

impl Fold for Minimum {
    fn from_first(value: f64) -> Self {
        Self(value)
    }
    fn update(&mut self, value: f64) {
        if value < self.0 || self.0.is_nan() {
            self.0 = value;
        }
    }
    fn result(self) -> f64 {
        self.0
    }
}

pub(super) struct Maximum(f64);

impl Fold for Maximum {
    fn from_first(value: f64) -> Self {
        Self(value)
    }
    fn update(&mut self, value: f64) {
        if value > self.0 || self.0.is_nan() {
            self.0 = value;
        }
    }
    fn result(self) -> f64 {
        self.0
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
    fn result(self) -> f64 {
        self.squares / self.count
    }
}

pub(super) struct StandardDeviation(PopulationVariance);

impl Fold for StandardDeviation {
    fn from_first(value: f64) -> Self {
        Self(PopulationVariance::from_first(value))
    }
    fn update(&mut self, value: f64) {
        self.0.update(value);
    }
    fn result(self) -> f64 {
        self.0.result().sqrt()
    }
}
