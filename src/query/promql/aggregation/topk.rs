//! Aggregations that keep some of the series as they are: `topk` and its like.
//!
//! Must never know: the store, the tree.

use std::cmp::Ordering;

use promql_parser::parser::token;
use xxhash_rust::xxh64::xxh64;

use super::fold::Group;
use crate::query::promql::{
    Labels, PromqlError,
    value::{
        annotations::Notes,
        numbers::text_of,
        series::{ABSENT, Series, is_present},
        steps::Grid,
    },
};

/// `topk`, `bottomk` and `limitk`: so many series of each group. At a single time the picked ones
/// come in the order of the pick.
pub(crate) fn counted(
    operator: token::TokenId,
    input: &[Series],
    groups: &[Group],
    numbers: &[f64],
    grid: &Grid,
) -> Result<Vec<Series>, PromqlError> {
    let mut kept: Vec<Series> = input
        .iter()
        .map(|series| Series {
            labels: series.labels.clone(),
            drop_metric: series.drop_metric,
            values: vec![ABSENT; grid.count],
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
                if grid.count == 1 {
                    order.push(*index);
                }
            }
        }
    }
    if grid.count == 1 {
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

/// `limit_ratio`: about this part of the series, always the same ones; a negative ratio keeps the
/// others.
pub(crate) fn by_ratio(
    mut input: Vec<Series>,
    numbers: &[f64],
    notes: &mut Notes,
) -> Result<Vec<Series>, PromqlError> {
    if numbers.iter().any(|ratio| ratio.is_nan()) {
        return Err(PromqlError::Execution("Ratio value is NaN".to_owned()));
    }
    for series in &mut input {
        let place = place_of(&series.labels);
        for (value, ratio) in series.values.iter_mut().zip(numbers) {
            let bounded = ratio.clamp(-1.0, 1.0);
            if bounded != *ratio {
                notes.warn(|| {
                    format!(
                        "ratio value should be between -1 and 1, got {}, capping to {}",
                        text_of(*ratio),
                        text_of(bounded)
                    )
                });
            }
            let within = if bounded >= 0.0 { place < bounded } else { place >= 1.0 + bounded };
            if !within {
                *value = ABSENT;
            }
        }
    }
    input.retain(Series::has_values);
    Ok(input)
}

/// A number from 0 to 1 that depends on the labels only.
fn place_of(labels: &Labels) -> f64 {
    let mut bytes = Vec::new();
    for text in labels.iter().flat_map(|(name, value)| [name, value]) {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0xff);
    }
    xxh64(&bytes, 0) as f64 / u64::MAX as f64
}
