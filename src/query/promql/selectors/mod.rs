//! From a selector to its series: matchers, the cells that are read for them, the values at each time.
//!
//! The only room that reads the store. Must never know: functions, operators, aggregations.

pub(crate) mod cells;
pub(crate) mod extended;
pub(crate) mod instant;
