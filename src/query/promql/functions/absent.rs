//! `absent` and `absent_over_time`: 1 where there is nothing.
//!
//! Must never know: the store, the tree.

use crate::query::promql::value::{
    labels::Labels,
    series::{ABSENT, Series, is_present},
    steps::Steps,
};

/// 1 where no series has a value.
pub(crate) fn absent(labels: Labels, found: &[Series], steps: &Steps) -> Vec<Series> {
    let missing = |at: usize| !found.iter().any(|one| is_present(one.values[at]));
    let values = (0..steps.count).map(|at| if missing(at) { 1.0 } else { ABSENT }).collect();
    let series = Series { labels, drop_metric: false, values };
    if series.has_values() { vec![series] } else { Vec::new() }
}
