//! The stored state of a group: one object, with further objects for the alerts of large groups.
//!
//! The first object is written last and removed first; pieces that it does not name are ignored.
//! Must never know: the content of a state.

use xxhash_rust::xxh3::xxh3_128;

use crate::{
    alerts::{GroupHistory, GroupState},
    kept::{Records, fault_of},
    model::UnixMillis,
    store::{ObjectKind, Store},
};

/// Returns the records of groups' past alerts, by the groups' ids.
pub(super) fn histories(store: &Store) -> Records<GroupHistory> {
    Records::new(store, ObjectKind::AlertHistory)
}

/// The stored pieces of a group's state. The names of all pieces but the first contain a `/` after
/// the group's id.
#[derive(Debug)]
pub(super) struct StoredState {
    records: Records<Vec<u8>>,
    id: String,
    /// The hash of each piece at its last write; `None` for a piece that must be written.
    hashes: Vec<Option<u128>>,
}

impl StoredState {
    /// Returns the stored state of a group; `None` when there is no readable state.
    pub(super) fn open(id: &str, store: &Store) -> (Self, Option<GroupState>) {
        let records = Records::new(store, ObjectKind::AlertState);
        let mut stored = Self { records, id: id.to_owned(), hashes: Vec::new() };
        let read = stored.read().unwrap_or_else(|cause| {
            tracing::error!(
                group = id,
                cause,
                "cannot read alerts; the group starts without alerts"
            );
            None
        });
        (stored, read)
    }

    /// Returns the ids of all groups with a stored state.
    pub(super) fn ids(store: &Store) -> Vec<String> {
        let records = Records::<Vec<u8>>::new(store, ObjectKind::AlertState);
        let names = records.names().unwrap_or_default();
        names.into_iter().filter(|name| !name.contains('/')).collect()
    }

    fn read(&mut self) -> Result<Option<GroupState>, String> {
        let Some(bytes) = self.read_piece(0, 0)? else { return Ok(None) };
        let mut state = GroupState::from_bytes(&bytes)?;
        let count = state.pieces;
        for index in 1..=count {
            // An unreadable piece is skipped: some alerts are better than none.
            let read = match self.read_piece(count, index) {
                Ok(Some(bytes)) => state.add_piece(&bytes),
                Ok(None) => Err("the piece is missing".to_owned()),
                Err(cause) => Err(cause),
            };
            if let Err(cause) = read {
                let name = self.piece_name(count, index);
                tracing::error!(name, cause, "cannot read some alerts; these alerts start over");
            }
        }
        Ok(Some(state))
    }

    fn read_piece(&mut self, count: usize, index: usize) -> Result<Option<Vec<u8>>, String> {
        let read = self.records.get(&self.piece_name(count, index));
        self.hashes.push(read.iter().flatten().next().map(|bytes| xxh3_128(bytes)));
        read
    }

    /// Returns the name of a piece. It contains the count, so that a crash while the count changes
    /// never mixes pieces.
    fn piece_name(&self, count: usize, index: usize) -> String {
        if index == 0 { self.id.clone() } else { format!("{}/{count}/{index}", self.id) }
    }

    /// Stores a state; returns the reason of a failure. The next call writes the missing pieces.
    pub(super) fn put(&mut self, state: &GroupState, now: UnixMillis) -> Option<String> {
        let pieces = state.to_pieces();
        let (count_before, count) = (self.hashes.len().saturating_sub(1), pieces.len() - 1);
        let kept = std::mem::replace(&mut self.hashes, vec![None; pieces.len()]);
        let mut fault = None;
        for (index, bytes) in pieces.iter().enumerate().rev() {
            let hash = xxh3_128(bytes);
            let is_named_alike = count_before == count || index == 0;
            let known =
                kept.get(index).copied().flatten().filter(|known| is_named_alike && *known == hash);
            // After a failure the first piece is not written: it would name missing pieces, and the
            // stored alerts would be lost.
            if known.is_none() && fault.is_none() {
                let name = self.piece_name(count, index);
                fault = fault_of(self.records.put(&name, bytes, now));
            }
            self.hashes[index] = Some(hash).filter(|_| known.is_some() || fault.is_none());
        }
        if fault.is_none() && count_before != count {
            self.remove_pieces(count_before);
        }
        fault
    }

    /// Removes the stored state; returns true if it succeeded.
    pub(super) fn remove(self) -> bool {
        let is_removed = matches!(self.records.remove(&self.id), Ok(Ok(())));
        self.remove_pieces(self.hashes.len().saturating_sub(1));
        is_removed
    }

    fn remove_pieces(&self, count: usize) {
        for index in 1..=count {
            // A remaining piece only takes space, because nothing refers to it.
            drop(self.records.remove(&self.piece_name(count, index)));
        }
    }
}
