//! The type of window functions, and their error for merged samples.
//!
//! Must never know: individual functions.

use crate::query::QueryError;
use crate::query::promql::value::{annotations::Notes, windows::Window};

/// The result of a function for one window; `None` without a value.
pub(super) type WindowResult = Result<Option<f64>, QueryError>;

/// A function of a window. The numbers are its further arguments.
pub(crate) type RangeFunction = fn(&Window<'_>, &[f64], &Notes<'_>) -> WindowResult;

/// Converts milliseconds to seconds.
pub(super) fn seconds(millis: i64) -> f64 {
    millis as f64 / 1000.0
}

/// Returns the error of a function that needs samples that were merged.
pub(super) fn merged_samples_error(function: &str, instead: &str) -> QueryError {
    QueryError::Execution(format!(
        "{function} needs every sample, and several samples were merged into one slot here: use \
         {instead}, or keep a granularity as fine as the samples, such as 10s in \
         config/seconds.toml"
    ))
}
