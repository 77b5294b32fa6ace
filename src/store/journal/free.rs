//! Release of space. Log files without needed records are removed. Free space in the file of the
//! tables is released only when there is much of it, because changes of the tables must wait in the
//! meantime.
//!
//! Must never know: which records are needed.

use std::sync::atomic::{AtomicU64, Ordering};

use redb::ReadableTable;

use super::{Journal, SERIES, fail, log};
use crate::store::error::StoreError;

/// The free bytes that are kept in addition to twice the bytes in use.
const FREE_BYTES_MAX: u64 = 4 << 20;
/// The approximate size of a series in the journal, in bytes.
const SERIES_BYTES: u64 = 256;
/// The bytes that are allocated after the end of the file.
const SLACK_BYTES: u64 = 1 << 20;

/// The limits of free space, above which it is released.
#[derive(Debug)]
pub(super) struct FreeSpace {
    bytes_max: AtomicU64,
    /// The size of the file after the last release, if the file was compact; otherwise 0.
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

    /// Sets the size from which the log continues in a new file.
    pub(crate) fn set_log_file_bytes(&self, bytes: u64) {
        self.log.lock().set_file_bytes(bytes);
    }

    /// Prepares spare files of the log, and allocates the blocks of the tables' file.
    pub(crate) fn reserve(&self) -> Result<(), StoreError> {
        let bytes = self.log.lock().use_spares();
        log::prepare_spares(&self.medium, bytes)?;
        // The next checkpoint would release more.
        self.file.allocate(SLACK_BYTES, self.kept_max()?)
    }

    /// Removes the records that a checkpoint covers, and releases free space of the tables when
    /// there is much.
    pub(crate) fn release_free_space(&self) -> Result<(), StoreError> {
        self.remove_records(self.checkpointed_through()?)?;
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

    /// Removes files of the log whose records are all covered by `through`.
    pub(crate) fn remove_records(&self, through: u64) -> Result<(), StoreError> {
        let (covered, has_spares) = {
            let log = self.log.lock();
            (log.covered(through), log.has_spares())
        };
        for first in covered.iter().copied() {
            // The number of spare files is the number of files that the log needs between two
            // checkpoints.
            let recycle = || log::recycle(&self.medium, first, covered.len());
            // On a full disk, the folder of spare files may have no block for another name.
            let is_spare = has_spares && recycle().unwrap_or(false);
            if !is_spare {
                log::remove(&self.medium, first)?;
            }
            self.log.lock().forget(first);
        }
        Ok(())
    }

    /// Returns the size in bytes from which the file of the tables releases space.
    fn kept_max(&self) -> Result<u64, StoreError> {
        let kept = self.free.compact_bytes.load(Ordering::Relaxed);
        let kept = kept.max(self.known_series()? * SERIES_BYTES);
        Ok(self.free.bytes_max.load(Ordering::Relaxed).saturating_add(kept * 2))
    }

    /// Returns the number of series, without those that the last commit of series defined.
    fn known_series(&self) -> Result<u64, StoreError> {
        let txn = self.file.read()?;
        self.file.guard("read", || {
            let table = txn.open_table(SERIES).map_err(fail("read"))?;
            let last = table.last().map_err(fail("read"))?;
            Ok(last.map_or(0, |(first, _)| u64::from(first.value())))
        })
    }
}
