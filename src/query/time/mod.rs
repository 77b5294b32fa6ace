//! Slots and time buckets: calendar units in a zone, the resolution of an answer, times as text.
//!
//! Must never know: the store, series.

pub(super) mod calendar;
pub(super) mod resolution;
mod timestamp;

pub use calendar::{CalendarUnit, time_zone, zone_name};
pub use resolution::Resolution;
pub use timestamp::Timestamp;
