//! Aggregations that keep a number of series of each group unchanged: `topk`, `bottomk` and
//! `limitk`.
//!
//! Must never know: the store, the tree.

use std::cmp::Ordering;

use super::{
    Aggregator,
    groups::{SeriesGroup, group_series},
};
use crate::query::QueryError;
use crate::query::promql::{
    context::{Context, bounds::KeptMemory},
    syntax::{operator::Aggregation, tree::Grouping},
    value::{numbers::text_of, series::Series},
};

/// Minimum number of series that are added before the selection is reduced again.
const ADDED_MIN: usize = if cfg!(test) { 4 } else { 1024 };
/// Number of added points from which the selection is reduced.
const POINTS_MAX: usize = 1 << 20;

/// A number of series of each group at each time; among equal values, the first series. At a single
/// time, the series are returned in the order of their selection.
pub(super) struct PickedSeries<'a> {
    operation: Aggregation,
    /// The number of series at each time.
    counts: Result<Vec<usize>, QueryError>,
    grouping: Option<&'a Grouping>,
    /// The series that were picked, and then series that were added since.
    series: Vec<Series>,
    picked: usize,
    context: &'a Context<'a>,
    memory: KeptMemory<'a>,
}

impl<'a> PickedSeries<'a> {
    pub(super) fn new(
        operation: Aggregation,
        numbers: &[f64],
        grouping: Option<&'a Grouping>,
        context: &'a Context<'a>,
    ) -> Self {
        let counts = numbers.iter().map(|number| series_count(*number)).collect();
        let (series, memory) = (Vec::new(), context.bounds.keep());
        Self { operation, counts, grouping, series, picked: 0, context, memory }
    }

    /// Drops series that are never among the first. A series that is not picked from a part of the
    /// input is not picked from the whole input either.
    fn reduce(&mut self) -> Result<(), QueryError> {
        let Ok(counts) = &self.counts else {
            self.series.clear();
            return Ok(());
        };
        if self.picked < self.series.len() {
            let input = std::mem::take(&mut self.series);
            let groups = group_series(&input, self.grouping);
            self.series = pick(self.operation, input, &groups, counts, self.context)?;
            self.picked = self.series.len();
        }
        Ok(())
    }
}

impl Aggregator for PickedSeries<'_> {
    fn add(&mut self, series: Vec<Series>) -> Result<(), QueryError> {
        self.context.bounds.check_time()?;
        if self.series.is_empty() {
            self.series = series;
        } else {
            self.series.extend(series);
        }
        let steps = self.context.steps;
        if is_due(self.picked, self.series.len() - self.picked, steps.count) {
            self.reduce()?;
        }
        self.memory.resize(Series::bytes_of(self.series.len(), steps))
    }

    fn series_count(&self) -> usize {
        self.picked
    }

    fn finish(mut self: Box<Self>) -> Result<Vec<Series>, QueryError> {
        self.reduce()?;
        let Self { counts, series, .. } = *self;
        counts.map(|_| series)
    }
}

/// Returns true when enough series were added to reduce the selection: at least as many as were
/// picked, so that each series is compared a few times at most.
fn is_due(picked: usize, added: usize, steps: usize) -> bool {
    added >= picked && (added >= ADDED_MIN || added.saturating_mul(steps) >= POINTS_MAX)
}

/// Picks series; see [`PickedSeries`].
fn pick(
    operation: Aggregation,
    mut input: Vec<Series>,
    groups: &[SeriesGroup],
    counts: &[usize],
    context: &Context<'_>,
) -> Result<Vec<Series>, QueryError> {
    let steps = context.steps;
    let mut is_picked = vec![false; input.len()];
    let (mut picked, mut order) = (Vec::new(), Vec::new());
    for (step, count) in counts.iter().copied().enumerate() {
        context.bounds.check_time()?;
        is_picked.fill(false);
        for group in groups.iter().filter(|_| count > 0) {
            let members = group.members.iter().copied();
            picked.clear();
            picked.extend(members.filter(|index| input[*index].is_at(step)));
            if operation == Aggregation::Limitk {
                picked.truncate(count);
            } else {
                keep_first(&mut picked, count, |left, right| {
                    let [value, other] = [left, right].map(|index| input[*index].values[step]);
                    best_first(value, other, operation == Aggregation::Topk).then(left.cmp(right))
                });
            }
            for index in &picked {
                is_picked[*index] = true;
            }
            if steps.count == 1 {
                order.extend_from_slice(&picked);
            }
        }
        for (series, is_picked) in input.iter_mut().zip(&is_picked) {
            if !is_picked {
                series.remove(step);
            }
        }
    }
    if steps.count == 1 {
        return Ok(order.into_iter().map(|index| input[index].clone()).collect());
    }
    input.retain(Series::has_values);
    Ok(input)
}

/// Keeps the first `count` elements of an order, in that order.
fn keep_first(
    all: &mut Vec<usize>,
    count: usize,
    mut order: impl FnMut(&usize, &usize) -> Ordering,
) {
    if count < all.len() {
        all.select_nth_unstable_by(count, &mut order);
        all.truncate(count);
    }
    all.sort_unstable_by(order);
}

fn series_count(number: f64) -> Result<usize, QueryError> {
    if number.is_nan() {
        return Err(QueryError::Execution("Parameter value is NaN".to_owned()));
    }
    if number.abs() >= i64::MAX as f64 {
        let text = text_of(number);
        return Err(QueryError::Execution(format!("Scalar value {text} overflows int64")));
    }
    Ok(if number < 1.0 { 0 } else { number as usize })
}

/// Compares values, best first. NaN is last in either direction.
fn best_first(left: f64, right: f64, largest: bool) -> Ordering {
    match (left.is_nan(), right.is_nan()) {
        (false, false) if largest => right.partial_cmp(&left).unwrap_or(Ordering::Equal),
        (false, false) => left.partial_cmp(&right).unwrap_or(Ordering::Equal),
        (left, right) => left.cmp(&right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_is_compared_a_few_times_however_many_are_picked() {
        for steps in [1, 300, 11_000, POINTS_MAX] {
            for chunk in [1, 363, 1024] {
                let (mut picked, mut added, mut compared) = (0, 0, 0);
                // Every series is picked.
                for _ in 0..100 {
                    added += chunk;
                    if is_due(picked, added, steps) {
                        compared += picked + added;
                        (picked, added) = (picked + added, 0);
                    }
                }
                assert!(compared <= 2 * (picked + added), "{steps} {chunk}: {compared}");
                assert!(picked > 0, "{steps} {chunk}");
            }
        }
    }
}
