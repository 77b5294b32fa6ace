//! Decoded cells of the head: a column has the cells of one series in several slots.
//!
//! A query of one metric over many hosts reads one cell of each of many rows, slot by slot, and a
//! dashboard repeats the query while the rows stay as they are until the next checkpoint. A column
//! replaces these reads by one look-up. It names the version of each slot, so that only changed
//! slots are decoded again. Must never know: the bytes of rows, which series a query reads.

use std::{ops::Range, sync::Arc};

use crate::store::documents::Slot;

/// The maximum number of slots of a column.
pub(crate) const COLUMN_SLOTS_MAX: usize = 1024;

/// The start of a slot, and the journal record with which the slot was last changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotVersion {
    pub(crate) start: i64,
    pub(crate) version: u64,
}

/// The cells of a series in some slots of the head.
#[derive(Debug)]
pub(crate) struct HeadColumn {
    /// The slots that are decoded, ascending, with or without a cell. Columns that were decoded
    /// together share them.
    slots: Arc<[SlotVersion]>,
    /// The cells, ascending.
    cells: Box<[Slot]>,
}

impl HeadColumn {
    /// Returns the size in memory in bytes, as if nothing were shared.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.slots) + size_of_val(&*self.cells)
    }

    /// Returns the slots that are decoded.
    pub(crate) fn slots(&self) -> &Arc<[SlotVersion]> {
        &self.slots
    }

    /// Returns the cells of the slots that begin within a range.
    pub(crate) fn within(&self, range: &Range<i64>) -> &[Slot] {
        let from = self.cells.partition_point(|slot| slot.start.0 < range.start);
        let cells = &self.cells[from..];
        &cells[..cells.partition_point(|slot| slot.start.0 < range.end)]
    }
}

/// The difference between the slots of a column and those that a view needs.
#[derive(Debug)]
pub(crate) struct ColumnUpdate {
    /// The slots that remain as they are, ascending.
    kept: Vec<SlotVersion>,
    /// All slots after the update.
    slots: Arc<[SlotVersion]>,
    /// True for each needed slot that the column lacks.
    missing: Vec<bool>,
    /// True when the column already has the needed slots, and no others among them.
    is_current: bool,
}

impl ColumnUpdate {
    /// Compares the slots of a column with the needed slots, both ascending. `version` returns the
    /// version of a slot.
    pub(crate) fn new(
        before: &[SlotVersion],
        needed: &Arc<[SlotVersion]>,
        version: impl Fn(i64) -> Option<u64>,
    ) -> Self {
        let has = |slots: &[SlotVersion], slot: &SlotVersion| {
            let found = slots.binary_search_by_key(&slot.start, |slot| slot.start);
            found.is_ok_and(|index| slots[index] == *slot)
        };
        let ends = needed.first().zip(needed.last());
        let is_among = |slot: &SlotVersion| {
            ends.is_some_and(|(first, last)| first.start <= slot.start && slot.start <= last.start)
        };
        let missing: Vec<_> = needed.iter().map(|slot| !has(before, slot)).collect();
        let among = before.iter().filter(|slot| is_among(slot)).count();
        let is_current = among == needed.len() && !missing.contains(&true);
        let is_kept = |slot: &&SlotVersion| {
            if is_among(slot) {
                has(needed, slot)
            } else {
                version(slot.start) == Some(slot.version)
            }
        };
        let mut kept: Vec<_> = before.iter().filter(is_kept).copied().collect();
        if kept.len() + needed.len() > COLUMN_SLOTS_MAX {
            kept.retain(is_among);
        }
        let slots = if kept.is_empty() {
            needed.clone()
        } else {
            let mut all: Vec<_> = kept.iter().chain(&**needed).copied().collect();
            all.sort_unstable_by_key(|slot| slot.start);
            all.dedup();
            all.into()
        };
        Self { kept, slots, missing, is_current }
    }

    /// Returns whether the column needs no update.
    pub(crate) fn is_current(&self) -> bool {
        self.is_current
    }

    /// Returns whether the needed slot at an index has to be decoded.
    pub(crate) fn lacks(&self, index: usize) -> bool {
        self.missing[index]
    }

    /// Returns the updated column; `decoded` are the cells of the missing slots, ascending.
    pub(crate) fn apply(&self, before: Option<&HeadColumn>, decoded: &[Slot]) -> HeadColumn {
        let kept =
            |slot: &&Slot| self.kept.binary_search_by_key(&slot.start.0, |kept| kept.start).is_ok();
        let of_before = before.into_iter().flat_map(|column| column.cells.iter().filter(kept));
        let mut cells: Vec<_> = of_before.chain(decoded).copied().collect();
        if before.is_some() {
            cells.sort_by_key(|slot| slot.start);
        }
        HeadColumn { slots: self.slots.clone(), cells: cells.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Cell, UnixMillis};

    fn versions(slots: &[(i64, u64)]) -> Arc<[SlotVersion]> {
        slots
            .iter()
            .map(|(start, version)| SlotVersion { start: *start, version: *version })
            .collect()
    }

    fn cells(slots: &[(i64, f64)]) -> Vec<Slot> {
        let slot = |(start, value): &(i64, f64)| Slot {
            start: UnixMillis(*start),
            cell: Cell::single(0, *value),
        };
        slots.iter().map(slot).collect()
    }

    fn missing(update: &ColumnUpdate, count: usize) -> Vec<usize> {
        (0..count).filter(|index| update.lacks(*index)).collect()
    }

    #[test]
    fn only_changed_and_new_slots_are_decoded_again() {
        let all = versions(&[(1, 5), (2, 5), (3, 5)]);
        let update = ColumnUpdate::new(&[], &all, |_| None);
        assert!(!update.is_current() && missing(&update, 3) == [0, 1, 2]);
        // The series has no sample in slot 2.
        let column = update.apply(None, &cells(&[(1, 1.0), (3, 3.0)]));
        assert!(ColumnUpdate::new(column.slots(), &all, |_| None).is_current());
        assert_eq!(column.within(&(2..4)), cells(&[(3, 3.0)]));
        assert_eq!(column.within(&(4..9)), []);
        let needed = versions(&[(2, 5), (3, 7), (4, 7)]);
        let update = ColumnUpdate::new(column.slots(), &needed, |_| Some(5));
        assert!(!update.is_current() && missing(&update, 3) == [1, 2]);
        let updated = update.apply(Some(&column), &cells(&[(3, 3.5), (4, 4.0)]));
        assert_eq!(updated.within(&(0..9)), cells(&[(1, 1.0), (3, 3.5), (4, 4.0)]));
        assert_eq!(**updated.slots(), *versions(&[(1, 5), (2, 5), (3, 7), (4, 7)]));
    }

    #[test]
    fn slots_that_left_the_head_or_changed_are_dropped() {
        let column = ColumnUpdate::new(&[], &versions(&[(1, 5), (2, 5), (3, 5), (4, 5)]), |_| None)
            .apply(None, &cells(&[(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)]));
        // Slot 1 changed, and slot 3 is in documents.
        let needed = versions(&[(2, 5), (4, 5)]);
        let update = ColumnUpdate::new(column.slots(), &needed, |_| Some(6));
        assert!(!update.is_current() && missing(&update, 2).is_empty());
        let updated = update.apply(Some(&column), &[]);
        assert_eq!(updated.within(&(0..9)), cells(&[(2, 2.0), (4, 4.0)]));
        assert_eq!(**updated.slots(), *needed);
    }

    #[test]
    fn a_column_has_a_maximum_of_slots() {
        let versions = |range: Range<i64>| range.map(|start| SlotVersion { start, version: 1 });
        let first: Arc<[_]> = versions(0..COLUMN_SLOTS_MAX as i64).collect();
        let next: Arc<[_]> =
            versions(COLUMN_SLOTS_MAX as i64 - 1..COLUMN_SLOTS_MAX as i64 + 2).collect();
        let update = ColumnUpdate::new(&first, &next, |_| Some(1));
        assert_eq!(update.slots, next);
        assert_eq!(missing(&update, 3), [1, 2]);
    }
}
