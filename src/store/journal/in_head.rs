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
        file::holes::{HOLES, Holes, StoredHoles, StretchTable},
    },
};

/// The table of slots whose cells are in the head.
pub(super) const IN_HEAD: StretchTable = TableDefinition::new("in_head");

/// Slots of one width, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InHead {
    pub(crate) width_ms: i64,
    pub(crate) slots: Holes,
}

/// A slot width in milliseconds, and the time that counts as lost when the journal's row is
/// damaged.
pub(crate) type Presumed = (i64, Range<UnixMillis>);

impl Journal {
    /// Returns the slots whose cells are in the head, by slot width; `None` for a width without a
    /// row.
    pub(crate) fn in_head(&self, all: &[Presumed]) -> Result<Vec<Option<Holes>>, StoreError> {
        let txn = self.file.read()?;
        let read = |(width_ms, presumed): &Presumed| {
            Ok(match self.stretches(&txn, IN_HEAD, *width_ms)? {
                StoredHoles::Absent => None,
                StoredHoles::Sound(slots) => Some(slots),
                StoredHoles::Damaged => {
                    let consequence =
                        "if the head is lost, more time than necessary counts as lost";
                    self.note_damaged(&IN_HEAD, *width_ms, consequence);
                    Some(Holes::of(presumed.clone()))
                }
            })
        };
        all.iter().map(read).collect()
    }

    /// Returns the slots whose cells were lost with heads.
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

    /// Stores the slots whose cells were lost with heads, if they changed.
    pub(crate) fn keep_lost(&self, lost: &[InHead], all: &[Presumed]) -> Result<(), StoreError> {
        const OPERATION: &str = "store lost slots";
        let known = self.lost_with_heads(all)?;
        if known.iter().eq(lost.iter().map(|found| &found.slots)) {
            return Ok(());
        }
        self.file.transact(OPERATION, |txn| store_lost(txn, lost, OPERATION))
    }

    fn note_damaged(&self, table: &StretchTable, width_ms: i64, consequence: &str) {
        self.damaged.note(table.name(), &format!("slots of {width_ms} ms: {consequence}"));
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

/// Stores the slots whose cells are in the head.
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

/// Stores the slots whose cells were lost with heads.
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
