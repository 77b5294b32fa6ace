//! Rooms of objects, one a kind: each has its own limit, so that no kind takes room from another.
//! Counted in memory, from the file when that is not known.
//!
//! Must never know: what is in an object.

use std::collections::BTreeMap;

use super::{OBJECTS_BYTES_MAX, OBJECTS_MAX, ObjectKind, ObjectRefusal};

/// The number of objects of each room, and their bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Rooms(BTreeMap<ObjectKind, (u64, u64)>);

impl Rooms {
    /// Counts an existing row.
    pub(super) fn add(&mut self, kind: ObjectKind, bytes: usize) {
        let own = self.0.entry(kind).or_default();
        *own = (own.0 + 1, own.1 + bytes as u64);
    }

    /// Notes that a row is gone.
    pub(super) fn remove(&mut self, kind: ObjectKind, bytes: usize) {
        let own = self.0.entry(kind).or_default();
        *own = (own.0.saturating_sub(1), own.1.saturating_sub(bytes as u64));
    }

    /// Replaces a row of `before` bytes by one of `bytes`; one that is not larger always fits.
    pub(super) fn put(
        &mut self,
        kind: ObjectKind,
        before: Option<usize>,
        bytes: usize,
    ) -> Result<(), ObjectRefusal> {
        if let Some(before) = before {
            self.remove(kind, before);
        }
        self.add(kind, bytes);
        let (count, all) = self.0.get(&kind).copied().unwrap_or_default();
        let is_beyond = count > OBJECTS_MAX || all > OBJECTS_BYTES_MAX;
        let grows = before.is_none_or(|before| bytes > before);
        if is_beyond && grows { Err(ObjectRefusal::NoRoom) } else { Ok(()) }
    }

    /// Objects of the room that has most, and bytes of the one that takes most.
    pub(super) fn fullest(&self) -> (u64, u64) {
        let own = || self.0.values();
        (own().map(|own| own.0).max().unwrap_or(0), own().map(|own| own.1).max().unwrap_or(0))
    }
}
