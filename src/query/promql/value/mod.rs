//! What an expression comes to, and what a range vector holds: labels, series, cells, windows, numbers.
//!
//! Plain values, calculated with and never looked up. Must never know: the store, the tree, who
//! evaluates.

pub(crate) mod annotations;
pub(crate) mod cells;
pub(crate) mod labels;
pub(crate) mod numbers;
pub(crate) mod series;
pub(crate) mod steps;
pub(crate) mod windows;
