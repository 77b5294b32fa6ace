//! The type of window functions, and their error for merged samples.
//!
//! Must never know: individual functions.

use crate::query::QueryError;
use crate::{
    model::{Kind, Span},
    query::promql::value::{annotations::Notes, cells::TimedCell, windows::Window},
};

/// The result of a function for one window; `None` without a value.
pub(super) type WindowResult = Result<Option<f64>, QueryError>;

/// A function of a window. The numbers are its further arguments.
pub(crate) type RangeFunction = fn(&Window<'_>, &[f64], &Notes<'_>) -> WindowResult;

/// Slot widths in seconds that the error suggests, the widest first. Each divides a minute.
const SUGGESTED_S: [i64; 8] = [30, 20, 15, 10, 5, 3, 2, 1];

/// Converts milliseconds to seconds.
pub(super) fn seconds(millis: i64) -> f64 {
    millis as f64 / 1000.0
}

/// An alternative to a function that needs every sample.
#[derive(Debug, Clone, Copy)]
pub(super) enum Instead {
    /// One value of each slot, determined by this function, in place of every sample.
    OfSlots(&'static str),
    /// Other functions.
    Others(&'static str),
}

/// Returns the error of a function that needs the samples of a merged cell. It contains the lines
/// of the settings that keep such samples.
pub(super) fn merged_samples_error(
    function: &str,
    instead: Instead,
    window: &Window<'_>,
    cell: &TimedCell,
) -> QueryError {
    let length = |ms: i64| Span::Fixed(ms).to_string();
    let (width_ms, finest_ms) = (window.frame.width_ms, window.frame.finest_ms);
    let slot = length(width_ms);
    let instead = match instead {
        Instead::Others(names) => names.to_owned(),
        Instead::OfSlots(inner) => {
            // The values of a counter's slot are its first and last reading, and its rate.
            let is_counter = window.kind_of(cell) == Kind::Counter;
            let inner = if is_counter && inner == "avg_over_time" { "rate" } else { inner };
            let parameter = if function == "quantile_over_time" { "0.5, " } else { "" };
            let range = length(window.range_ms().max(width_ms));
            format!(
                "one value of each slot, as in \
                 {function}({parameter}{inner}(x[{slot}])[{range}:{slot}])"
            )
        }
    };
    let fine_s = suggested_width_s(cell, finest_ms.min(width_ms));
    let remedy = match fine_s {
        _ if width_ms > finest_ms => format!(
            "ask for a time of which slots of {} are kept, or raise their retention",
            length(finest_ms)
        ),
        Some(fine_s) => format!(
            "keep later samples in finer slots: list the granularities in the settings, and before \
             them this one (docs/promql.md#when-an-expression-is-refused):\n\n\
             [[granularity]]\nslot = \"{fine_s}s\"\ndocument = \"{}\"\npartition = \"1h\"\n\
             retention = \"6h\"\n",
            length(fine_s * 60_000)
        ),
        None => "send samples further apart".to_owned(),
    };
    QueryError::Execution(format!(
        "{function} needs every sample, and slots of {slot} merged several samples here: use \
         {instead}, or {remedy}"
    ))
}

/// Returns the error of a function that needs the second moment of a cell that was stored without
/// it.
pub(super) fn unknown_moment_error(function: &str) -> QueryError {
    QueryError::Execution(format!(
        "{function} needs the deviations of samples, and an earlier release stored slots of this \
         time without them: ask for a later time, or use min_over_time and max_over_time"
    ))
}

/// Returns the width of slots that have about one sample each, in seconds; `None` when they would
/// be shorter than a second or no shorter than the finest slots.
fn suggested_width_s(cell: &TimedCell, finest_ms: i64) -> Option<i64> {
    let spacing_ms = (cell.last_at - cell.first_at) / i64::from(cell.n.saturating_sub(1).max(1));
    let fits = |width_s: &i64| {
        let width_ms = width_s * 1000;
        // A slot with two samples knows both, so the times of samples may vary.
        width_ms < finest_ms && finest_ms % width_ms == 0 && width_ms * 4 <= spacing_ms * 5
    };
    SUGGESTED_S.into_iter().find(fits)
}
