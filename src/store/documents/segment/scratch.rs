//! Memory that is reused from one block to the next, and the cache of decoded parts of segments.
//!
//! Must never know: what the numbers mean.

use std::sync::Arc;

use super::{bits::PADDING, buffers::Buffers, cache::SealedCache};
use crate::store::error::StoreError;

/// Memory that reading reuses.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) buffers: Buffers,
    /// Bytes of a file.
    pub(super) bytes: Vec<u8>,
    /// The blocks of the tile from which blocks were read last.
    pub(super) run: BlockRun,
    /// The cache of heads and columns, shared by later reads.
    pub(super) cache: Option<Arc<SealedCache>>,
}

impl Scratch {
    /// Returns memory with a cache of heads and columns.
    pub(crate) fn with_cache(cache: Arc<SealedCache>) -> Self {
        Self { cache: Some(cache), ..Self::default() }
    }
}

/// Bytes of the blocks of one tile.
#[derive(Debug, Default)]
pub(super) struct BlockRun {
    /// The segment and the tile.
    name: Option<(u64, usize)>,
    /// The offset of the bytes in the file.
    from: u64,
    /// The bytes with padding; empty before the second block of the tile is read.
    bytes: Vec<u8>,
}

impl BlockRun {
    /// Returns whether the last block that was read belongs to this tile, and remembers the tile.
    pub(super) fn begin(&mut self, name: (u64, usize)) -> bool {
        let is_same = self.name.replace(name) == Some(name);
        if !is_same {
            self.bytes.clear();
        }
        is_same
    }

    /// Returns a block and all bytes that follow, if the bytes contain the block.
    pub(super) fn get(&self, at: u64, length: usize) -> Option<&[u8]> {
        let from = usize::try_from(at.checked_sub(self.from)?).ok()?;
        let is_inside = from.checked_add(length + PADDING)? <= self.bytes.len();
        is_inside.then(|| &self.bytes[from..])
    }

    /// Replaces the bytes; `read` writes them with padding.
    pub(super) fn fill(
        &mut self,
        from: u64,
        read: impl FnOnce(&mut Vec<u8>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let outcome = read(&mut self.bytes);
        self.from = from;
        if outcome.is_err() {
            *self = Self::default();
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_returns_whole_blocks_of_the_last_tile() {
        let mut run = BlockRun::default();
        assert!(!run.begin((1, 2)) && run.begin((1, 2)));
        assert_eq!(run.get(100, 1), None, "one block does not begin a run");
        let content: Vec<u8> = (0..10).chain([0; PADDING]).collect();
        run.fill(100, |bytes| {
            bytes.clone_from(&content);
            Ok(())
        })
        .unwrap();
        assert_eq!(run.get(100, 10), Some(&content[..]));
        assert_eq!(run.get(102, 8), Some(&content[2..]));
        for (at, length) in [(102, 9), (99, 1), (111, 0), (u64::MAX, 1), (100, usize::MAX / 2)] {
            assert_eq!(run.get(at, length), None, "{at} {length}");
        }
        let problem = || StoreError::Corrupt { file: "a".to_owned(), problem: "b".to_owned() };
        assert!(run.fill(100, |_| Err(problem())).is_err());
        assert_eq!(run.get(100, 1), None);
        assert!(!run.begin((1, 3)) && !run.begin((2, 3)));
    }
}
