//! The slots whose cells are in the head as of the last cut, and the slots that were lost with
//! heads.
//!
//! Later cells are in records of the log. A head that is older than the cut therefore lacks these
//! slots, and no others. Must never know: why a head is older.

use std::ops::Range;

use redb::{TableDefinition, TableHandle, WriteTransaction};

use super::{Journal, fail};
use crate::{
    model::UnixMillis,
    store::{
        error::StoreError,
        file::holes::{HOLES, Holes, StoredHoles, StretchTable, width_of_key},
    },
};

/// The table of slots whose cells are in the head.
pub(super) const IN_HEAD: StretchTable = TableDefinition::new("in_head");

/// Slots of one level, with its key; see [`stretch_key`](crate::store::file::holes::stretch_key).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InHead {
    pub(crate) key: i64,
    pub(crate) slots: Holes,
}

/// The key of a level's stretches, and the time that counts as lost when the journal's row is
/// damaged.
pub(crate) type Presumed = (i64, Range<UnixMillis>);

impl Journal {
    /// Returns the slots whose cells are in the head, by level; `None` for a level without a
    /// row.
    pub(crate) fn in_head(&self, all: &[Presumed]) -> Result<Vec<Option<Holes>>, StoreError> {
        let txn = self.file.read()?;
        let read = |(key, presumed): &Presumed| {
            Ok(match self.stretches(&txn, IN_HEAD, *key)? {
                StoredHoles::Absent => None,
                StoredHoles::Sound(slots) => Some(slots),
                StoredHoles::Damaged => {
                    let consequence =
                        "if the head is lost, more time than necessary counts as lost";
                    self.note_damaged(&IN_HEAD, *key, consequence);
                    Some(Holes::of(presumed.clone()))
                }
            })
        };
        all.iter().map(read).collect()
    }

    /// Returns the slots whose cells were lost with heads.
    pub(crate) fn lost_with_heads(&self, all: &[Presumed]) -> Result<Vec<Holes>, StoreError> {
        let txn = self.file.read()?;
        let read = |(key, presumed): &Presumed| {
            Ok(match self.stretches(&txn, HOLES, *key)? {
                StoredHoles::Absent => Holes::default(),
                StoredHoles::Sound(holes) => holes,
                StoredHoles::Damaged => {
                    self.note_damaged(&HOLES, *key, "all of their time counts as lost");
                    Holes::of(UnixMillis::MIN..presumed.end)
                }
            })
        };
        all.iter().map(read).collect()
    }

    /// Stores the slots whose cells were lost with heads, if they changed.
    pub(crate) fn keep_lost(&self, lost: &[InHead], all: &[Presumed]) -> Result<(), StoreError> {
        const OPERATION: &str = "store lost slots";
        let known = self.lost_with_heads(all)?;
        if known.iter().eq(lost.iter().map(|found| &found.slots)) {
            return Ok(());
        }
        self.file.transact(OPERATION, |txn| store_lost(txn, lost, OPERATION))
    }

    fn note_damaged(&self, table: &StretchTable, key: i64, consequence: &str) {
        self.damaged
            .note(table.name(), &format!("slots of {} ms: {consequence}", width_of_key(key)));
    }

    fn stretches(
        &self,
        txn: &redb::ReadTransaction,
        table: StretchTable,
        key: i64,
    ) -> Result<StoredHoles, StoreError> {
        self.file.guard("read", || StoredHoles::read(txn, table, key).map_err(fail("read")))
    }
}

/// Stores the slots whose cells are in the head.
pub(super) fn store(
    txn: &WriteTransaction,
    all: &[InHead],
    operation: &'static str,
) -> Result<(), StoreError> {
    for InHead { key, slots } in all {
        slots.store(txn, IN_HEAD, *key).map_err(fail(operation))?;
    }
    Ok(())
}

/// Stores the slots whose cells were lost with heads.
pub(super) fn store_lost(
    txn: &WriteTransaction,
    all: &[InHead],
    operation: &'static str,
) -> Result<(), StoreError> {
    for InHead { key, slots } in all {
        StoredHoles::change(txn, *key, Holes::default(), |holes| holes.clone_from(slots))
            .map_err(fail(operation))?;
    }
    Ok(())
}
