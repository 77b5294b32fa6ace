//! Memory that is reused from one block to the next, and the cache of tile heads.
//!
//! Must never know: what the numbers mean.

use std::sync::Arc;

use super::{buffers::Buffers, heads::TileHeads};

/// Memory that reading reuses.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) buffers: Buffers,
    /// Bytes of a file.
    pub(super) bytes: Vec<u8>,
    /// The cache of tile heads, shared by later reads.
    pub(super) heads: Option<Arc<TileHeads>>,
}

impl Scratch {
    /// Returns memory with a cache of decoded heads.
    pub(crate) fn with_heads(heads: Arc<TileHeads>) -> Self {
        Self { heads: Some(heads), ..Self::default() }
    }
}
