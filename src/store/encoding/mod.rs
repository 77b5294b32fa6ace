//! Numbers as bytes, and how series share a row, as journal, head, catalog and segments have them.
//!
//! Must never know: what the numbers mean, and where they lie.

pub(crate) mod lanes;
pub(crate) mod number;
pub(crate) mod varint;
