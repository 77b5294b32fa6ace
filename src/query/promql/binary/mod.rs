//! Binary operators: between numbers, between vectors and numbers, between two vectors.
//!
//! Must never know: the store.

mod fill;
mod matching;
pub(crate) mod operators;
