//! Aggregations that keep so many series of each group as they are: `topk`, `bottomk` and `limitk`.
//!
//! Must never know: the store, the tree.

use std::cmp::Ordering;

use super::groups::Group;
use crate::query::promql::{
    syntax::operator::Aggregation,
    value::{
        error::PromqlError,
        numbers::text_of,
        series::{ABSENT, Series, is_present},
        steps::Steps,
    },
};

/// `topk`, `bottomk` and `limitk`: so many series of each group, of equal ones the first. At a
/// single time the picked ones come in the order of the pick.
pub(super) fn topk(
    operation: Aggregation,
    mut input: Vec<Series>,
    groups: &[Group],
    numbers: &[f64],
    steps: &Steps,
) -> Result<Vec<Series>, PromqlError> {
    let mut is_picked = vec![false; input.len()];
    let (mut picked, mut order) = (Vec::new(), Vec::new());
    for (at, number) in numbers.iter().enumerate() {
        let count = checked_count(*number)?;
        is_picked.fill(false);
        for group in groups.iter().filter(|_| count > 0) {
            let members = group.members.iter().copied();
            picked.clear();
            picked.extend(members.filter(|index| is_present(input[*index].values[at])));
            if operation == Aggregation::Limitk {
                picked.truncate(count);
            } else {
                keep_first(&mut picked, count, |one, next| {
                    let [value, other] = [one, next].map(|index| input[*index].values[at]);
                    best_first(value, other, operation == Aggregation::Topk).then(one.cmp(next))
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
                series.values[at] = ABSENT;
            }
        }
    }
    if steps.count == 1 {
        return Ok(order.into_iter().map(|index| input[index].clone()).collect());
    }
    input.retain(Series::has_values);
    Ok(input)
}

/// Keeps the first ones in an order, in that order.
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

fn checked_count(number: f64) -> Result<usize, PromqlError> {
    if number.is_nan() {
        return Err(PromqlError::Execution("Parameter value is NaN".to_owned()));
    }
    if number.abs() >= i64::MAX as f64 {
        let text = text_of(number);
        return Err(PromqlError::Execution(format!("Scalar value {text} overflows int64")));
    }
    Ok(if number < 1.0 { 0 } else { number as usize })
}

/// NaN comes last in either direction.
fn best_first(one: f64, next: f64, largest: bool) -> Ordering {
    match (one.is_nan(), next.is_nan()) {
        (false, false) if largest => next.partial_cmp(&one).unwrap_or(Ordering::Equal),
        (false, false) => one.partial_cmp(&next).unwrap_or(Ordering::Equal),
        (one, next) => one.cmp(&next),
    }
}
