//! The language of MongoDB's shell: calls such as `db.views.find({...})`, documents, extended JSON.
//!
//! Pipelines and updates are parsed with it. Must never know: what the values mean.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "code that accepts one kind of value refuses all others alike"
)]

pub(crate) mod notation;
pub(crate) mod value;
