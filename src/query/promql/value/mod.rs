//! What is calculated with, and what an answer is made of: series with a value for each time, range
//! vectors, labels, numbers, texts, and errors.
//!
//! Plain values, which depend on nothing else here. Must never know: how the store is read, the tree,
//! who evaluates.

pub(crate) mod annotations;
pub(crate) mod answer;
pub(crate) mod cells;
pub(crate) mod error;
pub(crate) mod labels;
pub(crate) mod numbers;
pub(crate) mod portion;
pub(crate) mod range_vector;
pub(crate) mod series;
pub(crate) mod steps;
pub(crate) mod text;
pub(crate) mod windows;
