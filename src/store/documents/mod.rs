//! Documents: the cells of one series over one document span, in partitions.
//!
//! Must never know: where cells come from, and when they are moved.

pub(crate) mod mark;
pub(crate) mod open;
pub(crate) mod place;
