//! Sampling: sources and their readings, the labels and refs of series, and monitored hosts.
//!
//! Must never know: how batches are stored and delivered.

pub(crate) mod plan;
pub(crate) mod problems;
pub(crate) mod readings;
pub(crate) mod refs;
pub mod relabel;
pub(crate) mod series;
pub(crate) mod side_by_side;
pub(crate) mod watched;
