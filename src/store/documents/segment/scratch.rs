//! Memory that reading one block leaves for the next, and the heads of groups.
//!
//! Must never know: what the numbers mean.

use std::sync::Arc;

use super::{buffers::Buffers, heads::GroupHeads};

/// Memory for reading, used again and again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) buffers: Buffers,
    /// Bytes of a file.
    pub(super) bytes: Vec<u8>,
    /// The cache of group heads, shared by later reads.
    pub(super) heads: Option<Arc<GroupHeads>>,
}

impl Scratch {
    /// One that goes by what was decoded before.
    pub(crate) fn with_heads(heads: Arc<GroupHeads>) -> Self {
        Self { heads: Some(heads), ..Self::default() }
    }
}
