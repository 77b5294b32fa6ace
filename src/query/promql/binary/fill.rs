//! `fill`, `fill_left` and `fill_right`: default values for series that are missing on one side of
//! an operator (Prometheus, docs/querying/operators.md).
//!
//! Must never know: what the operator computes.

use super::matching::{Group, Matching, groups};
use crate::query::promql::{
    syntax::tree,
    value::{
        series::{ABSENT, Series, is_present},
        steps::Steps,
    },
};

/// Adds a series to either side for each group and time in which only the other side has values.
pub(super) fn fill(
    left: &mut Vec<Series>,
    right: &mut Vec<Series>,
    values: &tree::Matching,
    matching: &Matching<'_>,
    steps: &Steps,
) {
    let groups = groups(left, right, matching);
    let there = |all: &[Series], side: fn(&Group) -> &[usize]| -> Vec<Vec<bool>> {
        groups
            .iter()
            .map(|group| any_present(side(group).iter().map(|i| &all[*i]), steps))
            .collect()
    };
    let (on_left, on_right) =
        (there(left, |group| &group.left), there(right, |group| &group.right));
    let stand_ins = |value: f64, there: &[Vec<bool>], missing: &[Vec<bool>]| {
        let sides = there.iter().zip(missing);
        let filled = groups.iter().zip(sides).map(|(group, (there, missing))| {
            let times = there.iter().zip(missing);
            let value = |(there, has): (&bool, &bool)| if *there && !has { value } else { ABSENT };
            let values = times.map(value).collect();
            Series { labels: group.signature.clone(), drop_metric: false, values }
        });
        filled.filter(Series::has_values).collect::<Vec<_>>()
    };
    if let Some(value) = values.fill_left {
        left.extend(stand_ins(value, &on_right, &on_left));
    }
    if let Some(value) = values.fill_right {
        right.extend(stand_ins(value, &on_left, &on_right));
    }
}

/// Returns for each time whether any series has a value.
pub(super) fn any_present<'a>(all: impl Iterator<Item = &'a Series>, steps: &Steps) -> Vec<bool> {
    let mut any = vec![false; steps.count];
    for series in all {
        for (any, value) in any.iter_mut().zip(&series.values) {
            *any |= is_present(*value);
        }
    }
    any
}
