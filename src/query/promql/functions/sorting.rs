//! Functions that sort series.
//!
//! The order only applies to a single time: series over time are in order of their labels. Must
//! never know: the store, the tree.

use std::cmp::Ordering;

use crate::query::promql::{
    context::Context,
    value::{histograms::HistogramColumn, numbers::ascending, series::Series},
};

/// Evaluates `sort` and `sort_desc`, which leave out native histograms.
pub(super) fn by_value(
    mut series: Vec<Series>,
    ascends: bool,
    context: &Context<'_>,
) -> Vec<Series> {
    for entry in &mut series {
        entry.histograms = HistogramColumn::NONE;
    }
    series.retain(Series::has_values);
    if is_ordered(context) {
        series.sort_by(|left, right| {
            let (left, right) = (left.values[0], right.values[0]);
            match (left.is_nan(), right.is_nan()) {
                (false, false) if ascends => ascending(left, right),
                (false, false) => ascending(right, left),
                // NaN is last in either direction.
                (left, right) => left.cmp(&right),
            }
        });
    }
    series
}

/// Evaluates `sort_by_label` and `sort_by_label_desc`. Numbers in labels are sorted by size.
pub(super) fn by_labels(
    mut series: Vec<Series>,
    names: &[String],
    ascends: bool,
    context: &Context<'_>,
) -> Vec<Series> {
    if is_ordered(context) {
        series.sort_by(|left, right| {
            let (left, right) = (&left.labels, &right.labels);
            let by_name = names.iter().map(|name| natural(left.get(name), right.get(name)));
            let order = by_name.fold(Ordering::Equal, Ordering::then).then_with(|| left.cmp(right));
            if ascends { order } else { order.reverse() }
        });
    }
    series
}

/// Returns true when the order applies; warns when the query has several times.
fn is_ordered(context: &Context<'_>) -> bool {
    let is_range = context.query.end != context.query.start;
    if is_range {
        context.notes.at_call().warn(|| {
            "sort is ineffective for range queries since results are always ordered by labels"
                .to_owned()
        });
    }
    !is_range && context.steps.count == 1
}

/// Compares texts; runs of digits count as numbers.
fn natural(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left, right);
    loop {
        let (head, rest) = chunk(left);
        let (right_head, right_rest) = chunk(right);
        let is_number = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
        let order = if is_number(head) && is_number(right_head) {
            let [digits, right_digits] =
                [head, right_head].map(|text| text.trim_start_matches('0'));
            digits
                .len()
                .cmp(&right_digits.len())
                .then(digits.cmp(right_digits))
                .then(head.len().cmp(&right_head.len()))
        } else {
            head.cmp(right_head)
        };
        if order != Ordering::Equal || (rest.is_empty() && right_rest.is_empty()) {
            return order.then(rest.cmp(right_rest));
        }
        (left, right) = (rest, right_rest);
    }
}

/// Splits off the first run of digits, or of other characters.
fn chunk(text: &str) -> (&str, &str) {
    let digit = |c: char| c.is_ascii_digit();
    let starts_with_digit = text.starts_with(digit);
    let end = text.find(|c: char| digit(c) != starts_with_digit).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_labels_sort_by_size() {
        let mut texts = vec!["a10", "a9", "b", "a", "10", "9", "a09"];
        texts.sort_by(|left, right| natural(left, right));
        assert_eq!(texts, ["9", "10", "a", "a9", "a09", "a10", "b"]);
    }
}
