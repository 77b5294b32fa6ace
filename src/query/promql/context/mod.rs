//! What functions, operators and aggregations are given beside their values.
//!
//! Must never know: the tree, the store, the evaluator.

pub(crate) mod bounds;

use super::value::{
    annotations::Notes,
    steps::{QueryRange, Steps},
};
use bounds::Bounds;

/// The surroundings of a calculation.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The times that the values are of.
    pub(crate) steps: &'a Steps,
    /// The times of the whole query.
    pub(crate) query: &'a QueryRange,
    /// Where time, points and bytes are asked for.
    pub(crate) bounds: &'a Bounds<'a>,
    /// Where warnings and infos go.
    pub(crate) notes: Notes<'a>,
}
