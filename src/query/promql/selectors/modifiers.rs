//! The times that selectors and subqueries look at: `@` and `offset`.
//!
//! Must never know: series, values.

use crate::query::promql::{
    syntax::tree::{At, Shift},
    value::{
        error::PromqlError,
        steps::{QueryRange, TimeShift},
    },
};

/// Where something looks that has these modifiers.
///
/// # Errors
/// When the offset cannot be calculated at the query's times.
pub(crate) fn shift(shift: &Shift, query: &QueryRange) -> Result<TimeShift, PromqlError> {
    let at = shift.at.map(|at| match at {
        At::Start => query.start,
        At::End => query.end,
        At::Millis(millis) => millis,
    });
    let offset_ms = shift.offset.as_ref().map_or(Ok(0), |offset| offset.millis(query.times))?;
    Ok(TimeShift { at, offset_ms })
}
