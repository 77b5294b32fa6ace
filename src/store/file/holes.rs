//! Holes: times whose samples were lost, stored in the file that replaces the lost data. FORMAT.md
//! describes the bytes.
//!
//! A reader that finds damage remembers it until the process ends. The writer that replaces the
//! damaged data stores the hole in the same transaction, so that it survives restarts and is part
//! of snapshots. The journal stores the holes of samples that were lost with a whole head. Must
//! never know: the lost data.

use std::{cmp::Reverse, ops::Range};

use redb::{ReadTransaction, ReadableTable, TableDefinition, WriteTransaction};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::model::{UnixMillis, split_level};

/// A table of ranges of time by slot width in milliseconds.
pub(crate) type StretchTable = TableDefinition<'static, u64, &'static [u8]>;

/// The table of holes.
pub(crate) const HOLES: StretchTable = TableDefinition::new("holes");
/// The maximum number of holes; beyond it, the nearest holes are joined.
const HOLES_MAX: usize = 128;
/// The size of a stored hole in bytes.
const HOLE_BYTES: usize = 16;
const CHECK_BYTES: usize = 8;

/// The number of low bits that contain the slot width in milliseconds, in a key of stretches.
const WIDTH_BITS: u32 = 27;

/// Returns the key of the stretches of a level: the slot width and, for a level of a class, bits of
/// a checksum of its name.
pub(crate) fn stretch_key(name: &str, width_ms: i64) -> i64 {
    if split_level(name).1.is_none() {
        return width_ms;
    }
    let class_bits = xxh3_64_with_seed(name.as_bytes(), 0) >> WIDTH_BITS << WIDTH_BITS;
    class_bits as i64 | width_ms
}

/// Returns the slot width of a key of stretches.
pub(crate) fn width_of_key(key: i64) -> i64 {
    key & ((1 << WIDTH_BITS) - 1)
}

/// A bounded set of disjoint time ranges, ascending. Beyond the limit, neighbouring ranges are
/// joined; no range is dropped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Holes(Vec<Range<UnixMillis>>);

impl Holes {
    /// Creates a set of one range.
    pub(crate) fn of(hole: Range<UnixMillis>) -> Self {
        let mut holes = Self::default();
        holes.add(hole);
        holes
    }

    /// Returns the ranges.
    pub(crate) fn stretches(&self) -> &[Range<UnixMillis>] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a range, joined with the ranges that it touches.
    pub(crate) fn add(&mut self, hole: Range<UnixMillis>) {
        if hole.is_empty() {
            return;
        }
        let first = self.0.partition_point(|known| known.end < hole.start);
        let after = self.0.partition_point(|known| known.start <= hole.end);
        let touched = &self.0[first..after];
        let start = touched.first().map_or(hole.start, |known| known.start.min(hole.start));
        let end = touched.last().map_or(hole.end, |known| known.end.max(hole.end));
        self.0.splice(first..after, [start..end]);
        if self.0.len() > HOLES_MAX {
            self.join_nearest();
        }
    }

    /// Removes a range.
    pub(crate) fn remove(&mut self, range: &Range<UnixMillis>) {
        let rest = std::mem::take(&mut self.0).into_iter().flat_map(|known| {
            let before = known.start..known.end.min(range.start);
            let after = known.start.max(range.end)..known.end;
            if range.is_empty() { [known, after.end..after.end] } else { [before, after] }
        });
        rest.filter(|part| !part.is_empty()).for_each(|part| self.add(part));
    }

    /// Adds all ranges of another set.
    pub(crate) fn add_all(&mut self, other: &Self) {
        other.0.iter().for_each(|hole| self.add(hole.clone()));
    }

    fn join_nearest(&mut self) {
        let gap = |index: &usize| self.0[index + 1].start.since(self.0[*index].end);
        if let Some(nearest) = (0..self.0.len() - 1).max_by_key(|index| Reverse(gap(index))) {
            self.0[nearest].end = self.0.remove(nearest + 1).end;
        }
    }

    /// Returns whether a time is in a hole.
    pub(crate) fn has(&self, at: UnixMillis) -> bool {
        let after = self.0.partition_point(|known| known.start <= at);
        after > 0 && at < self.0[after - 1].end
    }

    /// Returns the bytes to store under a key.
    fn to_bytes(&self, key: u64) -> Vec<u8> {
        let times = self.0.iter().flat_map(|hole| [hole.start, hole.end]);
        let mut bytes: Vec<u8> = times.flat_map(|at| at.0.to_le_bytes()).collect();
        bytes.extend(xxh3_64_with_seed(&bytes, key).to_le_bytes());
        bytes
    }

    /// Removes the ranges that end at or before a time.
    pub(crate) fn forget_before(&mut self, at: UnixMillis) {
        self.0.retain(|known| known.end > at);
    }

    /// Replaces the stored ranges of a slot width.
    pub(crate) fn store(
        &self,
        txn: &WriteTransaction,
        table: StretchTable,
        width_ms: i64,
    ) -> Result<(), redb::Error> {
        let key = width_ms as u64;
        txn.open_table(table)?.insert(key, &*self.to_bytes(key))?;
        Ok(())
    }

    /// Parses the bytes under a key; `None` when they are damaged.
    fn from_bytes(bytes: &[u8], key: u64) -> Option<Self> {
        let (times, check) = bytes.split_last_chunk::<CHECK_BYTES>()?;
        if u64::from_le_bytes(*check) != xxh3_64_with_seed(times, key) {
            return None;
        }
        let (holes, rest) = times.as_chunks::<HOLE_BYTES>();
        let mut all = Self::default();
        for hole in holes {
            let (start, end) = hole.split_first_chunk::<8>()?;
            let end = end.first_chunk::<8>()?;
            all.add(UnixMillis(i64::from_le_bytes(*start))..UnixMillis(i64::from_le_bytes(*end)));
        }
        rest.is_empty().then_some(all)
    }
}

/// The stored ranges of a slot width.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StoredHoles {
    /// The file has no row.
    Absent,
    /// The ranges of the row.
    Sound(Holes),
    /// The row is damaged.
    Damaged,
}

impl StoredHoles {
    fn of(bytes: Option<&[u8]>, width_ms: i64) -> Self {
        let Some(bytes) = bytes else { return Self::Absent };
        Holes::from_bytes(bytes, width_ms as u64).map_or(Self::Damaged, Self::Sound)
    }

    /// Reads the ranges of a slot width.
    pub(crate) fn read(
        txn: &ReadTransaction,
        table: StretchTable,
        width_ms: i64,
    ) -> Result<Self, redb::Error> {
        let table = txn.open_table(table)?;
        let bytes = table.get(width_ms as u64)?;
        Ok(Self::of(bytes.as_ref().map(redb::AccessGuard::value), width_ms))
    }

    /// Changes the holes of a slot width within a transaction, and returns them. When the stored
    /// holes are damaged, `otherwise` replaces them.
    pub(crate) fn change(
        txn: &WriteTransaction,
        width_ms: i64,
        otherwise: Holes,
        change: impl FnOnce(&mut Holes),
    ) -> Result<Holes, redb::Error> {
        let mut table = txn.open_table(HOLES)?;
        let stored = {
            let bytes = table.get(width_ms as u64)?;
            Self::of(bytes.as_ref().map(redb::AccessGuard::value), width_ms)
        };
        let mut holes = match stored {
            Self::Absent => Holes::default(),
            Self::Sound(holes) => holes,
            Self::Damaged => otherwise,
        };
        change(&mut holes);
        if holes.is_empty() {
            table.remove(width_ms as u64)?;
        } else {
            table.insert(width_ms as u64, &*holes.to_bytes(width_ms as u64))?;
        }
        Ok(holes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times(range: Range<i64>) -> Range<UnixMillis> {
        UnixMillis(range.start)..UnixMillis(range.end)
    }

    #[test]
    fn ranges_that_touch_are_joined() {
        let mut holes = Holes::default();
        for hole in [50..60, 10..20, 30..40, 20..30, 5..5] {
            holes.add(times(hole));
        }
        assert_eq!(holes.stretches(), [times(10..40), times(50..60)]);
    }

    proptest! {
        #[test]
        fn a_bounded_set_contains_all_added_ranges_also_when_it_is_read_from_bytes(
            added in prop::collection::vec((0_i64..100_000, 1_i64..30), 0..600),
            flipped in any::<prop::sample::Index>(),
        ) {
            let mut holes = Holes::default();
            for (start, length) in &added {
                holes.add(times(*start..start + length));
            }
            prop_assert!(holes.stretches().len() <= HOLES_MAX);
            prop_assert!(holes.stretches().windows(2).all(|pair| pair[0].end < pair[1].start));
            for (start, length) in added {
                prop_assert!((start..start + length).all(|at| holes.has(UnixMillis(at))));
            }
            let mut bytes = holes.to_bytes(60_000);
            prop_assert_eq!(Holes::from_bytes(&bytes, 60_000), Some(holes));
            prop_assert_eq!(Holes::from_bytes(&bytes, 300_000), None);
            let bit = flipped.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Holes::from_bytes(&bytes, 60_000), None);
        }
    }
}
