//! Aggregations: many series of a group to one, or to some of them.
//!
//! Must never know: the store.

mod count_values;
mod fold;
mod topk;
