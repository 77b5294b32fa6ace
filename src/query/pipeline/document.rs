//! Documents on their way through a pipeline.
//!
//! Must never know: stages, or where documents come from.

use super::{quota::Taken, value::Fields};
use crate::query::QueryError;

/// A document on its way, with what it takes.
pub(super) struct Document<'a> {
    /// Its fields.
    pub(super) fields: Fields,
    /// What they take of the quota.
    pub(super) taken: Taken<'a>,
}

/// Documents on their way.
pub(super) type Documents<'a> = Box<dyn Iterator<Item = Result<Document<'a>, QueryError>> + 'a>;
