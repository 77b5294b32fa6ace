//! Memory that reading one block leaves for the next, and the heads of tiles.
//!
//! Must never know: what the numbers mean.

use std::sync::Arc;

use super::{buffers::Buffers, heads::TileHeads};

/// Memory for reading, used again and again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) buffers: Buffers,
    /// Bytes of a file.
    pub(super) bytes: Vec<u8>,
    /// The cache of tile heads, shared by later reads.
    pub(super) heads: Option<Arc<TileHeads>>,
}

impl Scratch {
    /// One that goes by what was decoded before.
    pub(crate) fn with_heads(heads: Arc<TileHeads>) -> Self {
        Self { heads: Some(heads), ..Self::default() }
    }
}
