//! `absent` and `absent_over_time`, which return 1 when there is no series.
//!
//! Must never know: the store, the tree.

use crate::query::Labels;
use crate::query::promql::value::{
    series::{ABSENT, Series},
    steps::Steps,
};

/// Returns 1 at times without any value.
pub(crate) fn absent(labels: Labels, found: &[Series], steps: &Steps) -> Vec<Series> {
    let missing = |step: usize| !found.iter().any(|series| series.is_at(step));
    let values = (0..steps.count).map(|step| if missing(step) { 1.0 } else { ABSENT }).collect();
    let series = Series::new(labels, false, values);
    if series.has_values() { vec![series] } else { Vec::new() }
}
