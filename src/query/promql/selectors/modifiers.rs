//! What the modifiers of selectors and subqueries come to: `@`, `offset` and lengths of time.
//!
//! Must never know: series, values.

use std::time::{Duration, SystemTime};

use promql_parser::parser::{AtModifier, Offset};

use crate::query::promql::value::{
    error::PromqlError,
    steps::{QueryRange, TimeShift},
};

/// Lengths of time in expressions are cut to this, so that times cannot overflow.
pub(super) const DURATION_MAX_MS: u128 = 1_000_000_000_000_000;

/// Where something looks that has these modifiers.
pub(crate) fn shift(
    at: Option<&AtModifier>,
    offset: Option<&Offset>,
    query: &QueryRange,
) -> TimeShift {
    let at = at.map(|modifier| match modifier {
        AtModifier::Start => query.start,
        AtModifier::End => query.end,
        AtModifier::At(time) => match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => millis(after),
            Err(before) => -millis(before.duration()),
        },
    });
    let offset_ms = match offset {
        None => 0,
        Some(Offset::Pos(length)) => millis(*length),
        Some(Offset::Neg(length)) => -millis(*length),
    };
    TimeShift { at, offset_ms }
}

/// A length of time in milliseconds, which may not be nothing.
pub(crate) fn positive_ms(length: Duration) -> Result<i64, PromqlError> {
    match millis(length) {
        0 => Err(PromqlError::BadData("parse error: duration must be greater than 0".to_owned())),
        millis => Ok(millis),
    }
}

fn millis(length: Duration) -> i64 {
    length.as_millis().min(DURATION_MAX_MS) as i64
}
