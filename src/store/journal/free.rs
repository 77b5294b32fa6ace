//! The space of records that are not needed any more: given back when it is much.
//!
//! Appends wait meanwhile, so it has to be worth it: what they fill again before the next checkpoint
//! is kept for them. Must never know: which records are needed.

use std::sync::atomic::{AtomicU64, Ordering};

use redb::ReadableTable;

use super::{Journal, SERIES, cut::remove_covered, fail};
use crate::store::error::StoreError;

/// So much may be free, twice what is not, and what appends fill again.
const FREE_BYTES_MAX: u64 = 4 << 20;
/// Pages for each byte that was appended since the last time: redb takes runs of 2, 4, 8 .. pages, and
/// gives those of a removed record out again after the next commit.
const PAGES_A_BYTE: u64 = 3;
/// What the journal keeps of a series, about.
const SERIES_BYTES: u64 = 256;

/// When space is given back.
#[derive(Debug)]
pub(super) struct FreeSpace {
    bytes_max: AtomicU64,
    /// What the file took when there was little to give back; 0 when there was much since.
    compact_bytes: AtomicU64,
    /// Bytes of records since it was last asked whether space is to be given back.
    appended: AtomicU64,
}

impl Default for FreeSpace {
    fn default() -> Self {
        let (compact_bytes, appended) = Default::default();
        Self { bytes_max: AtomicU64::new(FREE_BYTES_MAX), compact_bytes, appended }
    }
}

impl FreeSpace {
    /// Notes that so many bytes were appended.
    pub(super) fn note_appended(&self, bytes: usize) {
        self.appended.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Journal {
    /// Has space given back from so much on.
    pub(crate) fn set_free_bytes_max(&self, bytes: u64) {
        self.free.bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Removes what a checkpoint covers, and gives its space back, when that is much more than what
    /// appends fill again.
    pub(crate) fn give_back(&self) -> Result<(), StoreError> {
        let appended = self.free.appended.swap(0, Ordering::Relaxed);
        let before = self.file.bytes()?;
        if before <= self.kept_max()?.saturating_add(appended * PAGES_A_BYTE) {
            return Ok(());
        }
        while self.file.transact("give back space", remove_covered)? {}
        if self.file.compact()? {
            let after = self.file.bytes()?;
            let is_compact = after > before / 4 * 3;
            self.free.compact_bytes.store(if is_compact { after } else { 0 }, Ordering::Relaxed);
        }
        Ok(())
    }

    /// What the file may take when nothing is appended.
    fn kept_max(&self) -> Result<u64, StoreError> {
        let kept = self.free.compact_bytes.load(Ordering::Relaxed);
        let kept = kept.max(self.known_series()? * SERIES_BYTES);
        Ok(self.free.bytes_max.load(Ordering::Relaxed).saturating_add(kept * 2))
    }

    /// How many series there are, but for those that the last commit made known.
    fn known_series(&self) -> Result<u64, StoreError> {
        let txn = self.file.read()?;
        self.file.guard("read", || {
            let table = txn.open_table(SERIES).map_err(fail("read"))?;
            let last = table.last().map_err(fail("read"))?;
            Ok(last.map_or(0, |(first, _)| u64::from(first.value())))
        })
    }
}
