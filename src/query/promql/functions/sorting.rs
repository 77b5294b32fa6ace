//! Functions that put series in an order.
//!
//! An order counts at a single time only: series over time come in order of their labels. Must never
//! know: the store, the tree.

use std::cmp::Ordering;

use crate::query::promql::{
    context::Context,
    value::{numbers::ascending, series::Series},
};

/// `sort` and `sort_desc`.
pub(super) fn by_value(
    mut series: Vec<Series>,
    rising: bool,
    context: &Context<'_>,
) -> Vec<Series> {
    if is_ordered(context) {
        series.sort_by(|one, next| {
            let (one, next) = (one.values[0], next.values[0]);
            match (one.is_nan(), next.is_nan()) {
                (false, false) if rising => ascending(one, next),
                (false, false) => ascending(next, one),
                // NaN comes last in either direction.
                (one, next) => one.cmp(&next),
            }
        });
    }
    series
}

/// `sort_by_label` and `sort_by_label_desc`: by the labels named, numbers in them by their size.
pub(super) fn by_labels(
    mut series: Vec<Series>,
    names: &[String],
    rising: bool,
    context: &Context<'_>,
) -> Vec<Series> {
    if is_ordered(context) {
        series.sort_by(|one, next| {
            let (one, next) = (&one.labels, &next.labels);
            let by_name = names.iter().map(|name| natural(one.get(name), next.get(name)));
            let order = by_name.fold(Ordering::Equal, Ordering::then).then_with(|| one.cmp(next));
            if rising { order } else { order.reverse() }
        });
    }
    series
}

/// Whether an order counts; warns where the query asks for several times.
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

/// Order of texts in which runs of digits count as numbers.
fn natural(one: &str, next: &str) -> Ordering {
    let (mut one, mut next) = (one, next);
    loop {
        let (head, rest) = chunk(one);
        let (next_head, next_rest) = chunk(next);
        let digits = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
        let order = if digits(head) && digits(next_head) {
            let [own, other] = [head, next_head].map(|text| text.trim_start_matches('0'));
            own.len().cmp(&other.len()).then(own.cmp(other)).then(head.len().cmp(&next_head.len()))
        } else {
            head.cmp(next_head)
        };
        if order != Ordering::Equal || (rest.is_empty() && next_rest.is_empty()) {
            return order.then(rest.cmp(next_rest));
        }
        (one, next) = (rest, next_rest);
    }
}

/// The first run of digits, or of anything else.
fn chunk(text: &str) -> (&str, &str) {
    let digit = |c: char| c.is_ascii_digit();
    let starts = text.starts_with(digit);
    let end = text.find(|c: char| digit(c) != starts).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_labels_sort_by_size() {
        let mut texts = vec!["a10", "a9", "b", "a", "10", "9", "a09"];
        texts.sort_by(|one, next| natural(one, next));
        assert_eq!(texts, ["9", "10", "a", "a9", "a09", "a10", "b"]);
    }
}
