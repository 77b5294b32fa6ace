//! Documents in a pipeline.
//!
//! Must never know: stages, or where documents come from.

use super::{quota::Share, value::Fields};
use crate::query::QueryError;

/// A document with the quota that it uses.
pub(super) struct Document<'a> {
    pub(super) fields: Fields,
    /// The quota that the fields use.
    pub(super) share: Share<'a>,
}

/// A stream of documents.
pub(super) type Documents<'a> = Box<dyn Iterator<Item = Result<Document<'a>, QueryError>> + 'a>;
