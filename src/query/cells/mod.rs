//! Cells along an axis of slots, for charts and documents, and for `PromQL` beyond its windows.
//!
//! Must never know: what is queried, how an answer looks.

pub(super) mod axis;
pub(super) mod coverage;
pub(super) mod neighbours;
pub(super) mod reader;
pub(super) mod spacing;
