//! Aggregations that keep so many series of each group as they are: `topk`, `bottomk` and `limitk`.
//!
//! Must never know: the store, the tree.

use std::cmp::Ordering;

use promql_parser::parser::token;

use super::groups::Group;
use crate::query::promql::value::{
    error::PromqlError,
    numbers::text_of,
    series::{ABSENT, Series, is_present},
    steps::Steps,
};

/// `topk`, `bottomk` and `limitk`: so many series of each group. At a single time the picked ones
/// come in the order of the pick.
pub(super) fn topk(
    operator: token::TokenId,
    input: &[Series],
    groups: &[Group],
    numbers: &[f64],
    steps: &Steps,
) -> Result<Vec<Series>, PromqlError> {
    let mut kept: Vec<Series> = input
        .iter()
        .map(|series| Series {
            labels: series.labels.clone(),
            drop_metric: series.drop_metric,
            values: vec![ABSENT; steps.count],
        })
        .collect();
    let mut order = Vec::new();
    let mut there = Vec::new();
    for (at, number) in numbers.iter().enumerate() {
        let count = checked_count(*number)?;
        for group in groups.iter().filter(|_| count > 0) {
            there.clear();
            let members = group.members.iter().copied();
            there.extend(members.filter(|index| is_present(input[*index].values[at])));
            if operator != token::T_LIMITK {
                let value = |index: &usize| input[*index].values[at];
                there.sort_by(|one, next| {
                    best_first(value(one), value(next), operator == token::T_TOPK)
                });
            }
            for index in there.iter().take(count) {
                kept[*index].values[at] = input[*index].values[at];
                if steps.count == 1 {
                    order.push(*index);
                }
            }
        }
    }
    if steps.count == 1 {
        return Ok(order.into_iter().map(|index| kept[index].clone()).collect());
    }
    kept.retain(Series::has_values);
    Ok(kept)
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
