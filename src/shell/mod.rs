//! The language of MongoDB's shell: calls such as `db.views.find({...})`, documents, extended JSON.
//!
//! Pipelines and the ingest of updates read it. Must never know: what is asked or updated.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a place for one kind of value refuses all others"
)]

pub(crate) mod notation;
pub(crate) mod value;
