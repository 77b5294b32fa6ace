//! `changes` and `resets`: the number of changed values and of decreases between samples.
//!
//! Must never know: the store, the tree.

use super::window::{Instead, WindowResult, merged_samples_error};
use crate::{
    model::Kind,
    query::promql::value::{annotations::Notes, cells::TimedCell, windows::Window},
};

/// The last value of each slot; its changes from slot to slot are known.
const OF_SLOTS: Instead = Instead::OfSlots("last_over_time");

/// Counts values that differ from the previous value.
pub(super) fn changes(window: &Window<'_>, _: &[f64], _: &Notes<'_>) -> WindowResult {
    let mut changes = 0.0;
    let mut before: Option<f64> = None;
    for portion in window.portions() {
        let cell = portion.cell;
        let differ =
            |earlier: f64, later: f64| earlier != later && !(earlier.is_nan() && later.is_nan());
        let at_start = before.is_some_and(|before| differ(before, cell.first));
        let pairs = f64::from(portion.steps());
        let changes_within = match window.kind_of(cell).of_counts() {
            _ if portion.steps() == 0 => 0.0,
            _ if cell.n == 2 => f64::from(u8::from(differ(cell.first, cell.last))),
            // Rates between readings show whether no value changed or all values changed.
            Kind::Counter if cell.max <= 0.0 => 0.0,
            Kind::Counter if cell.min > 0.0 => pairs,
            Kind::Gauge | Kind::Delta if cell.min == cell.max => 0.0,
            Kind::Gauge
            | Kind::Delta
            | Kind::Counter
            | Kind::Histogram
            | Kind::GaugeHistogram
            | Kind::DeltaHistogram => {
                return Err(merged_samples_error("changes", OF_SLOTS, window, cell));
            }
        };
        changes += changes_within + f64::from(u8::from(at_start));
        before = Some(cell.last);
    }
    Ok(Some(changes))
}

/// Counts values that are smaller than the previous value.
pub(super) fn resets(window: &Window<'_>, _: &[f64], notes: &Notes<'_>) -> WindowResult {
    let mut resets = 0.0;
    let mut before: Option<f64> = None;
    for portion in window.portions() {
        let cell = portion.cell;
        let at_start = before.is_some_and(|before| cell.first < before);
        let inside = if portion.steps() == 0 {
            0.0
        } else if cell.n == 2 {
            f64::from(u8::from(cell.last < cell.first))
        } else if window.kind == Kind::Counter {
            let earlier = before.or_else(|| window.before().map(|cell| cell.last));
            let has_reset = has_reset(cell, earlier);
            if has_reset {
                notes.warn(|| {
                    "resets counts at most one reset inside of a slot, because several samples \
                     were merged into it"
                        .to_owned()
                });
            }
            f64::from(u8::from(has_reset))
        } else if cell.min == cell.max {
            0.0
        } else {
            return Err(merged_samples_error("resets", OF_SLOTS, window, cell));
        };
        resets += inside + f64::from(u8::from(at_start));
        before = Some(cell.last);
    }
    Ok(Some(resets))
}

/// Returns true when a counter was reset between the first and the last reading of a cell. Its
/// increase then contains a reading before a reset.
fn has_reset(cell: &TimedCell, earlier: Option<f64>) -> bool {
    let to_first = match earlier {
        Some(earlier) if cell.first < earlier => cell.first,
        Some(earlier) => cell.first - earlier,
        None => return cell.last < cell.first,
    };
    let noise = 1e-9 * cell.sum.abs().max(cell.last.abs());
    cell.last < cell.first || cell.sum - (to_first + cell.last - cell.first) > noise
}
