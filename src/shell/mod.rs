//! The language of MongoDB's shell: calls such as `db.views.find({...})`, documents, extended JSON.
//!
//! Pipelines and updates are parsed with it. Must never know: what the values mean.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "code that accepts one kind of value refuses all others alike"
)]

// Paths are those of the crate granary, which reexports these crates.
use crate as shell;
use granary_model as model;

pub mod notation;
pub mod value;
