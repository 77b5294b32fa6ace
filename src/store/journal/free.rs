//! The space of records and rows that are not needed any more: files of the log are removed, and
//! free space of the tables is given back when it is much. Changes of tables wait meanwhile, so it
//! has to be worth it.
//!
//! Must never know: which records are needed.

use std::sync::atomic::{AtomicU64, Ordering};

use redb::ReadableTable;

use super::{Journal, SERIES, fail, log};
use crate::store::error::StoreError;

/// Bytes that may be free besides twice the bytes that are not.
const FREE_BYTES_MAX: u64 = 4 << 20;
/// Bytes that the journal keeps of a series, about.
const SERIES_BYTES: u64 = 256;

/// The bounds from which space is given back.
#[derive(Debug)]
pub(super) struct FreeSpace {
    bytes_max: AtomicU64,
    /// The bytes of the file when there was little to give back; 0 when there was much since.
    compact_bytes: AtomicU64,
}

impl Default for FreeSpace {
    fn default() -> Self {
        Self { bytes_max: AtomicU64::new(FREE_BYTES_MAX), compact_bytes: AtomicU64::new(0) }
    }
}

impl Journal {
    /// Sets the free bytes from which space is given back.
    pub(crate) fn set_free_bytes_max(&self, bytes: u64) {
        self.free.bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Sets the bytes of a file of the log from which another one follows it.
    pub(crate) fn set_log_file_bytes(&self, bytes: u64) {
        self.log.lock().set_file_bytes(bytes);
    }

    /// Removes what a checkpoint covers, and gives the tables' space back when it is much.
    pub(crate) fn give_back(&self) -> Result<(), StoreError> {
        let through = self.checkpointed_through()?;
        let covered = self.log.lock().covered(through);
        for first in covered {
            log::remove(&self.medium, first)?;
            self.log.lock().forget(first);
        }
        let before = self.file.bytes()?;
        if before <= self.kept_max()? {
            return Ok(());
        }
        if self.file.compact()? {
            let after = self.file.bytes()?;
            let is_compact = after > before / 4 * 3;
            self.free.compact_bytes.store(if is_compact { after } else { 0 }, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The most bytes that the file of the tables may take.
    fn kept_max(&self) -> Result<u64, StoreError> {
        let kept = self.free.compact_bytes.load(Ordering::Relaxed);
        let kept = kept.max(self.known_series()? * SERIES_BYTES);
        Ok(self.free.bytes_max.load(Ordering::Relaxed).saturating_add(kept * 2))
    }

    /// The number of series, without those of the last commit that defined some.
    fn known_series(&self) -> Result<u64, StoreError> {
        let txn = self.file.read()?;
        self.file.guard("read", || {
            let table = txn.open_table(SERIES).map_err(fail("read"))?;
            let last = table.last().map_err(fail("read"))?;
            Ok(last.map_or(0, |(first, _)| u64::from(first.value())))
        })
    }
}
