//! The slots that the head has cells of as of the last cut, and those that were lost with heads.
//!
//! Cells that came since are in records of the log. So a head that is older than the cut lacks
//! these slots, and no more. Must never know: why a head is older.

use std::ops::Range;

use redb::{TableDefinition, TableHandle, WriteTransaction};

use super::{Journal, fail};
use crate::{
    model::UnixMillis,
    store::{
        error::StoreError,
        file::holes::{HOLES, Holes, StoredHoles, StretchTable},
    },
};

/// The slots that the head has cells of.
pub(super) const IN_HEAD: StretchTable = TableDefinition::new("in_head");

/// Slots of one slot width, in ms: those of which the head has cells, or those that were lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InHead {
    pub(crate) width_ms: i64,
    pub(crate) slots: Holes,
}

/// A slot width, in ms, and the time that counts as lost where the journal's row is damaged.
pub(crate) type Presumed = (i64, Range<UnixMillis>);

impl Journal {
    /// The slots that the head has cells of, by slot width; `None` where none were ever noted.
    pub(crate) fn in_head(&self, all: &[Presumed]) -> Result<Vec<Option<Holes>>, StoreError> {
        let txn = self.file.read()?;
        let read = |(width_ms, presumed): &Presumed| {
            Ok(match self.stretches(&txn, IN_HEAD, *width_ms)? {
                StoredHoles::Absent => None,
                StoredHoles::Sound(slots) => Some(slots),
                StoredHoles::Damaged => {
                    self.note_damaged(&IN_HEAD, *width_ms, "should the head be lost, more is");
                    Some(Holes::of(presumed.clone()))
                }
            })
        };
        all.iter().map(read).collect()
    }

    /// The slots of which cells were lost with heads.
    pub(crate) fn lost_with_heads(&self, all: &[Presumed]) -> Result<Vec<Holes>, StoreError> {
        let txn = self.file.read()?;
        let read = |(width_ms, presumed): &Presumed| {
            Ok(match self.stretches(&txn, HOLES, *width_ms)? {
                StoredHoles::Absent => Holes::default(),
                StoredHoles::Sound(holes) => holes,
                StoredHoles::Damaged => {
                    self.note_damaged(&HOLES, *width_ms, "all of their time counts as lost");
                    Holes::of(UnixMillis::MIN..presumed.end)
                }
            })
        };
        all.iter().map(read).collect()
    }

    /// Stores the times of cells that were lost with heads, if they changed.
    pub(crate) fn keep_lost(&self, lost: &[InHead], all: &[Presumed]) -> Result<(), StoreError> {
        const OPERATION: &str = "note what was lost";
        let known = self.lost_with_heads(all)?;
        if known.iter().eq(lost.iter().map(|found| &found.slots)) {
            return Ok(());
        }
        self.file.transact(OPERATION, |txn| store_lost(txn, lost, OPERATION))
    }

    fn note_damaged(&self, table: &StretchTable, width_ms: i64, what: &str) {
        self.damaged.note(table.name(), &format!("slots of {width_ms} ms: {what}"));
    }

    fn stretches(
        &self,
        txn: &redb::ReadTransaction,
        table: StretchTable,
        width_ms: i64,
    ) -> Result<StoredHoles, StoreError> {
        self.file.guard("read", || StoredHoles::read(txn, table, width_ms).map_err(fail("read")))
    }
}

/// Stores where the head has cells.
pub(super) fn store(
    txn: &WriteTransaction,
    all: &[InHead],
    operation: &'static str,
) -> Result<(), StoreError> {
    for InHead { width_ms, slots } in all {
        slots.store(txn, IN_HEAD, *width_ms).map_err(fail(operation))?;
    }
    Ok(())
}

/// Stores where cells were lost with heads.
pub(super) fn store_lost(
    txn: &WriteTransaction,
    all: &[InHead],
    operation: &'static str,
) -> Result<(), StoreError> {
    for InHead { width_ms, slots } in all {
        StoredHoles::change(txn, *width_ms, Holes::default(), |holes| holes.clone_from(slots))
            .map_err(fail(operation))?;
    }
    Ok(())
}
