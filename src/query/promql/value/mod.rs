//! What is calculated with: series with a value for each time, range vectors, labels, numbers, texts.
//!
//! Plain values, which depend on nothing else here. Must never know: the store, the tree, who
//! evaluates.

pub(crate) mod annotations;
pub(crate) mod cells;
pub(crate) mod labels;
pub(crate) mod numbers;
pub(crate) mod range_vector;
pub(crate) mod series;
pub(crate) mod steps;
pub(crate) mod text;
pub(crate) mod windows;
