//! Rooms of objects: each has a limit of its own, so that what some people make takes no room from
//! what others need. Counted in memory, from the file when that is not known.
//!
//! Must never know: what is in an object.

use std::collections::BTreeMap;

use super::{OBJECTS_BYTES_MAX, OBJECTS_MAX, ObjectKind, ObjectRefusal};

/// What the names of messages begin with that receivers are owed; they are of the kind of rules.
pub const OWED_NAMES: &str = "notify/";

/// What shares a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ObjectRoom {
    /// All of one kind.
    Kind(ObjectKind),
    /// What receivers are owed.
    Owed,
}

impl ObjectRoom {
    /// The room of an object.
    pub(super) fn of(kind: ObjectKind, name: &str) -> Self {
        let is_owed = kind == ObjectKind::Rule && name.starts_with(OWED_NAMES);
        if is_owed { Self::Owed } else { Self::Kind(kind) }
    }
}

/// How many objects there are in each room, and their bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Rooms(BTreeMap<ObjectRoom, (u64, u64)>);

impl Rooms {
    /// Notes a row that is there.
    pub(super) fn add(&mut self, room: ObjectRoom, bytes: usize) {
        let own = self.0.entry(room).or_default();
        *own = (own.0 + 1, own.1 + bytes as u64);
    }

    /// Notes that a row is gone.
    pub(super) fn remove(&mut self, room: ObjectRoom, bytes: usize) {
        let own = self.0.entry(room).or_default();
        *own = (own.0.saturating_sub(1), own.1.saturating_sub(bytes as u64));
    }

    /// Puts a row of so many bytes in place of one of `before`; what does not grow always fits.
    pub(super) fn put(
        &mut self,
        room: ObjectRoom,
        before: Option<usize>,
        bytes: usize,
    ) -> Result<(), ObjectRefusal> {
        if let Some(before) = before {
            self.remove(room, before);
        }
        self.add(room, bytes);
        let (count, all) = self.0.get(&room).copied().unwrap_or_default();
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
