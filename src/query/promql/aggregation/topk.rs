//! Aggregations that keep a number of series of each group unchanged: `topk`, `bottomk` and
//! `limitk`.
//!
//! Must never know: the store, the tree.

use std::cmp::Ordering;

use super::groups::SeriesGroup;
use crate::query::QueryError;
use crate::query::promql::{
    syntax::operator::Aggregation,
    value::{
        numbers::text_of,
        series::{ABSENT, Series, is_present},
        steps::Steps,
    },
};

/// Keeps a number of series of each group at each time; among equal values, the first series. At a
/// single time, the series are returned in the order of their selection.
pub(super) fn topk(
    operation: Aggregation,
    mut input: Vec<Series>,
    groups: &[SeriesGroup],
    numbers: &[f64],
    steps: &Steps,
) -> Result<Vec<Series>, QueryError> {
    let mut is_picked = vec![false; input.len()];
    let (mut picked, mut order) = (Vec::new(), Vec::new());
    for (step, number) in numbers.iter().enumerate() {
        let count = series_count(*number)?;
        is_picked.fill(false);
        for group in groups.iter().filter(|_| count > 0) {
            let members = group.members.iter().copied();
            picked.clear();
            picked.extend(members.filter(|index| is_present(input[*index].values[step])));
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
                series.values[step] = ABSENT;
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
