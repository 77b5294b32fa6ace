//! `fill`, `fill_left` and `fill_right`: default values for series that are missing on one side of
//! an operator (Prometheus, docs/querying/operators.md).
//!
//! Must never know: what the operator computes.

use super::matching::{MatchGroup, Matching, groups};
use crate::query::promql::{
    syntax::tree,
    value::{
        series::{ABSENT, Series, is_present},
        steps::Steps,
    },
};

/// Adds to each side, for each group, a series with the default value at the times at which only
/// the other side has values.
pub(super) fn fill(
    left: &mut Vec<Series>,
    right: &mut Vec<Series>,
    values: &tree::Matching,
    matching: &Matching<'_>,
    steps: &Steps,
) {
    let groups = groups(left, right, matching);
    let presence = |all: &[Series], side: fn(&MatchGroup) -> &[usize]| -> Vec<Vec<bool>> {
        groups
            .iter()
            .map(|group| any_present(side(group).iter().map(|i| &all[*i]), steps))
            .collect()
    };
    let (on_left, on_right) =
        (presence(left, |group| &group.left), presence(right, |group| &group.right));
    let fill_series = |value: f64, other: &[Vec<bool>], side: &[Vec<bool>]| {
        let sides = other.iter().zip(side);
        let filled = groups.iter().zip(sides).map(|(group, (other, side))| {
            let times = other.iter().zip(side);
            let value =
                |(other, side): (&bool, &bool)| if *other && !side { value } else { ABSENT };
            let values = times.map(value).collect();
            Series::new(group.signature.clone(), false, values)
        });
        filled.filter(Series::has_values).collect::<Vec<_>>()
    };
    if let Some(value) = values.fill_left {
        left.extend(fill_series(value, &on_right, &on_left));
    }
    if let Some(value) = values.fill_right {
        right.extend(fill_series(value, &on_left, &on_right));
    }
}

/// Returns for each time whether any series has a value.
pub(super) fn any_present<'a>(all: impl Iterator<Item = &'a Series>, steps: &Steps) -> Vec<bool> {
    let mut any = vec![false; steps.count];
    for series in all {
        for (any, value) in any.iter_mut().zip(&series.values) {
            *any |= is_present(*value);
        }
        series.histograms.iter().for_each(|(step, _)| any[step] = true);
    }
    any
}
