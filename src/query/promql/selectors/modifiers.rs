//! The time shift of selectors and subqueries: `@` and `offset`.
//!
//! Must never know: series, values.

use crate::query::QueryError;
use crate::query::promql::{
    syntax::tree::{AtTime, Shift},
    value::steps::{QueryRange, TimeShift},
};

/// Evaluates the modifiers of a selector or subquery.
///
/// # Errors
/// When the offset cannot be calculated at the query's times.
pub(crate) fn shift(shift: &Shift, query: &QueryRange) -> Result<TimeShift, QueryError> {
    let at = shift.at.map(|at| match at {
        AtTime::Start => query.start,
        AtTime::End => query.end,
        AtTime::Millis(millis) => millis,
    });
    let offset_ms = shift.offset.as_ref().map_or(Ok(0), |offset| offset.millis(query.times))?;
    Ok(TimeShift { at, offset_ms })
}
