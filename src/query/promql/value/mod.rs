//! The values of a calculation and of an answer: series with a value per time, range vectors,
//! numbers, texts.
//!
//! These values depend on nothing else in PromQL. Must never know: how the store is read, the tree,
//! the evaluator.

pub(crate) mod annotations;
pub(crate) mod answer;
pub(crate) mod cells;
pub(crate) mod histograms;
pub(crate) mod numbers;
pub(crate) mod portion;
pub(crate) mod range_vector;
pub(crate) mod series;
pub(crate) mod steps;
pub(crate) mod text;
pub(crate) mod windows;
