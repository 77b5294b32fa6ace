//! Damage in a file that is otherwise intact: damaged documents and rows of the head, and the holes
//! that the file stores after these were replaced.
//!
//! Each damaged entry is noted once, so that its loss is logged and counted once. Must never know:
//! the content of the entries.

use std::{
    collections::BTreeSet,
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use redb::WriteTransaction;

use super::{
    database::DatabaseFile,
    holes::{HOLES, Holes, StoredHoles},
};
use crate::{model::UnixMillis, store::error::StoreError};

/// The maximum number of damaged entries that are logged; further entries are only counted.
const NAMED_MAX: usize = 100;

/// Keys of damaged entries, and the holes that the file stores.
#[derive(Debug, Default)]
pub(crate) struct Damage {
    noted: Mutex<BTreeSet<u64>>,
    holes: Mutex<Holes>,
    /// The number of holes when the file was opened.
    from_before: u64,
    /// True when the stored holes were damaged and have not been written again.
    is_unreadable: AtomicBool,
}

impl Damage {
    /// Reads the stored holes of a slot width. When these are damaged, the range `otherwise`
    /// becomes a hole, and this is logged, because it covers more than was lost.
    pub(crate) fn read(
        file: &DatabaseFile,
        width_ms: i64,
        otherwise: Range<UnixMillis>,
    ) -> Result<Self, StoreError> {
        let txn = file.read()?;
        let mut is_unreadable = false;
        let stored = file.guard("read", || {
            StoredHoles::read(&txn, HOLES, width_ms).map_err(file.fail("read"))
        })?;
        let holes = match stored {
            StoredHoles::Absent => Holes::default(),
            StoredHoles::Sound(holes) => holes,
            StoredHoles::Damaged => {
                is_unreadable = true;
                let (file, Range { start, end }) = (file.name(), &otherwise);
                tracing::error!(
                    file,
                    %start,
                    %end,
                    "the record of what was lost is damaged: all of this time counts as lost"
                );
                let mut holes = Holes::default();
                holes.add(otherwise);
                holes
            }
        };
        let from_before = holes.stretches().len() as u64;
        let is_unreadable = AtomicBool::new(is_unreadable);
        Ok(Self { noted: Mutex::default(), holes: Mutex::new(holes), from_before, is_unreadable })
    }

    /// Notes a damaged entry by its key. Returns true when the entry is new. `log` logs a new
    /// entry, unless too many entries have been logged.
    pub(crate) fn note(&self, key: u64, log: impl FnOnce()) -> bool {
        let mut noted = self.noted.lock();
        let is_new = noted.insert(key);
        if is_new && noted.len() <= NAMED_MAX {
            log();
        }
        is_new
    }

    /// Returns the keys of the noted entries, ascending.
    pub(crate) fn keys(&self) -> Vec<u64> {
        self.noted.lock().iter().copied().collect()
    }

    /// Returns true when an entry was noted.
    pub(crate) fn has(&self, key: u64) -> bool {
        self.noted.lock().contains(&key)
    }

    /// Returns true when an entry in a range of keys was noted.
    pub(crate) fn has_within(&self, keys: Range<u64>) -> bool {
        self.noted.lock().range(keys).next().is_some()
    }

    /// Forgets the noted entries, which no longer exist.
    pub(crate) fn forget_noted(&self) {
        self.noted.lock().clear();
    }

    /// Returns whether the stored holes were damaged when the file was opened.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.is_unreadable.load(Ordering::Relaxed)
    }

    /// Notes that the holes are stored again.
    pub(crate) fn note_readable(&self) {
        self.is_unreadable.store(false, Ordering::Relaxed);
    }

    /// Returns the number of noted entries.
    pub(crate) fn count(&self) -> u64 {
        self.noted.lock().len() as u64
    }

    /// Returns the number of holes from earlier runs.
    pub(crate) fn holes_from_before(&self) -> u64 {
        self.from_before
    }

    /// Returns the holes of the file.
    pub(crate) fn holes(&self) -> Holes {
        self.holes.lock().clone()
    }

    /// Changes the stored holes within a transaction of the file, and returns them. The caller
    /// passes them to [`Self::put_holes`] when the transaction is durable.
    pub(crate) fn change_holes(
        &self,
        file: &DatabaseFile,
        txn: &WriteTransaction,
        width_ms: i64,
        change: impl FnOnce(&mut Holes),
    ) -> Result<Holes, StoreError> {
        StoredHoles::change(txn, width_ms, self.holes(), change).map_err(file.fail("write"))
    }

    /// Replaces the holes in memory with the stored holes.
    pub(crate) fn put_holes(&self, holes: Holes) {
        *self.holes.lock() = holes;
    }
}
