//! What the functions of a window have in common: their type, and how they refuse merged samples.
//!
//! Must never know: which functions there are.

use crate::query::promql::value::{annotations::Notes, error::PromqlError, windows::Window};

/// A function's answer for one window; `None` where it has none.
pub(super) type Answer = Result<Option<f64>, PromqlError>;

/// A function of a window. The numbers are its other arguments.
pub(crate) type RangeFunction = fn(&Window<'_>, &[f64], &Notes<'_>) -> Answer;

/// Milliseconds as seconds.
pub(super) fn seconds(millis: i64) -> f64 {
    millis as f64 / 1000.0
}

/// Why merged samples do not answer this.
pub(super) fn merged(function: &str, instead: &str) -> PromqlError {
    PromqlError::Execution(format!(
        "{function} needs every sample, and several samples were merged into one slot here: use \
         {instead}, or keep a granularity as fine as the samples are, such as the 10s one of \
         config/seconds.toml"
    ))
}
