//! The context of functions, operators and aggregations.
//!
//! Must never know: the tree, the store, the evaluator.

pub(crate) mod bounds;

use super::value::{
    annotations::Notes,
    steps::{QueryRange, Steps},
};
use bounds::Bounds;

/// The context of a calculation.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The times of the values.
    pub(crate) steps: &'a Steps,
    /// The times of the whole query.
    pub(crate) query: &'a QueryRange,
    /// The limits for time, points and memory.
    pub(crate) bounds: &'a Bounds<'a>,
    /// The warnings and infos.
    pub(crate) notes: Notes<'a>,
}
