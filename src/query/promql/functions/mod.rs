//! The functions: what they compute of values that others have evaluated.
//!
//! Must never know: the store, the tree.

pub(crate) mod histograms;
pub(crate) mod info;
pub(crate) mod labels;
pub(crate) mod maths;
pub(crate) mod over_time;
pub(crate) mod rates;
pub(crate) mod regression;
