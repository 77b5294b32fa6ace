//! Release of space: files of the log without needed records are removed, and free space of the
//! tables is released when there is much of it. Changes of tables wait meanwhile, so it must be
//! worth it.
//!
//! Must never know: which records are needed.

use std::sync::atomic::{AtomicU64, Ordering};

use redb::ReadableTable;

use super::{Journal, SERIES, fail, log};
use crate::store::error::StoreError;

/// The free bytes that are kept besides twice the bytes in use.
const FREE_BYTES_MAX: u64 = 4 << 20;
/// The approximate size of a series in the journal, in bytes.
const SERIES_BYTES: u64 = 256;

/// The bounds from which space is released.
#[derive(Debug)]
pub(super) struct FreeSpace {
    bytes_max: AtomicU64,
    /// The size of the file when it had little free space; 0 when it had much since.
    compact_bytes: AtomicU64,
}

impl Default for FreeSpace {
    fn default() -> Self {
        Self { bytes_max: AtomicU64::new(FREE_BYTES_MAX), compact_bytes: AtomicU64::new(0) }
    }
}

impl Journal {
    /// Sets the free bytes from which space is released.
    pub(crate) fn set_free_bytes_max(&self, bytes: u64) {
        self.free.bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Sets the size from which a file of the log is followed by another one.
    pub(crate) fn set_log_file_bytes(&self, bytes: u64) {
        self.log.lock().set_file_bytes(bytes);
    }

    /// Removes the records that a checkpoint covers, and releases free space of the tables when
    /// there is much.
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

    /// The maximum size of the file of the tables in bytes.
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
