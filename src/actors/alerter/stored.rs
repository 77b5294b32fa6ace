//! The state of a group in the store: one object, and further ones with its alerts where there are many.
//!
//! The first object is written last and removed first: pieces of before that it does not name count for
//! nothing. Must never know: what is in a state.

use xxhash_rust::xxh3::xxh3_128;

use crate::{
    alerts::GroupState,
    model::UnixMillis,
    store::{ObjectKind, ObjectRefusal, Store},
};

/// The prefix of the names of stored states; further pieces have a `/` behind the group's id.
const STATES: &str = "state/";

/// The stored objects of a group's state.
#[derive(Debug, Default)]
pub(super) struct StoredState {
    name: String,
    pieces: Vec<Stored>,
}

/// An object as it was written last.
#[derive(Debug, Default, Clone, Copy)]
struct Stored {
    version: Option<u64>,
    hash: u128,
}

impl StoredState {
    /// The state of a group. One that cannot be read is begun anew.
    pub(super) fn open(id: &str, store: &Store) -> (Self, Option<GroupState>) {
        let mut own = Self { name: format!("{STATES}{id}"), pieces: Vec::new() };
        let read = own.read(store).unwrap_or_else(|cause| {
            tracing::error!(group = id, cause, "cannot read alerts; they begin anew");
            None
        });
        (own, read)
    }

    /// The ids of all groups whose states are stored.
    pub(super) fn ids(store: &Store) -> Vec<String> {
        let listed = store.objects(ObjectKind::Rule).unwrap_or_default();
        let ids = listed.iter().filter_map(|own| own.name.strip_prefix(STATES));
        ids.filter(|id| !id.contains('/')).map(str::to_owned).collect()
    }

    fn read(&mut self, store: &Store) -> Result<Option<GroupState>, String> {
        let Some(bytes) = self.read_piece(0, 0, store)? else { return Ok(None) };
        let mut state = GroupState::from_bytes(&bytes)?;
        let count = state.pieces;
        for at in 1..=count {
            let name = self.piece_name(count, at);
            // The others are read: better some alerts than none.
            let read = match self.read_piece(count, at, store) {
                Ok(Some(bytes)) => state.add_piece(&bytes),
                Ok(None) => Err("it is not there".to_owned()),
                Err(cause) => Err(cause),
            };
            if let Err(cause) = read {
                tracing::error!(name, cause, "cannot read some alerts; they begin anew");
            }
        }
        Ok(Some(state))
    }

    fn read_piece(
        &mut self,
        count: usize,
        at: usize,
        store: &Store,
    ) -> Result<Option<Vec<u8>>, String> {
        let found = store.object(ObjectKind::Rule, &self.piece_name(count, at));
        let found = found.map_err(|cause| cause.to_string());
        let found = found.inspect_err(|_| self.pieces.push(Stored::default()))?;
        self.pieces.push(found.as_ref().map_or_else(Stored::default, |object| Stored {
            version: Some(object.version),
            hash: xxh3_128(&object.bytes),
        }));
        Ok(found.map(|object| object.bytes))
    }

    /// Names of another count are others: a crash while the count changes mixes nothing.
    fn piece_name(&self, count: usize, at: usize) -> String {
        if at == 0 { self.name.clone() } else { format!("{}/{count}/{at}", self.name) }
    }

    /// Stores a state. When that fails, the next one goes over it; returns why.
    pub(super) fn put(
        &mut self,
        state: &GroupState,
        now: UnixMillis,
        store: &Store,
    ) -> Option<String> {
        let pieces = state.to_pieces();
        let (before, count) = (self.pieces.len().saturating_sub(1), pieces.len() - 1);
        let first = self.pieces.first().copied().unwrap_or_default();
        let kept = if before == count { std::mem::take(&mut self.pieces) } else { Vec::new() };
        let mut fault = None;
        let mut written = vec![Stored::default(); pieces.len()];
        for (at, bytes) in pieces.iter().enumerate().rev() {
            let was = if at == 0 { Some(&first) } else { kept.get(at) };
            let mut own = was.copied().unwrap_or_default();
            let hash = xxh3_128(bytes);
            // A first piece that names pieces which are not there would lose what it has now.
            if fault.is_none() && (own.version.is_none() || own.hash != hash) {
                let name = self.piece_name(count, at);
                (own, fault) = put(&name, own, bytes, now, store);
            }
            written[at] = own;
        }
        if fault.is_none() && before != count {
            self.remove_pieces(before, store);
        }
        self.pieces = written;
        fault
    }

    /// Removes what is stored; returns whether it was.
    pub(super) fn remove(self, store: &Store) -> bool {
        let version = self.pieces.first().and_then(|own| own.version);
        let is_removed =
            matches!(store.delete_object(ObjectKind::Rule, &self.name, version), Ok(Ok(())));
        self.remove_pieces(self.pieces.len().saturating_sub(1), store);
        is_removed
    }

    fn remove_pieces(&self, count: usize, store: &Store) {
        for at in 1..=count {
            let name = self.piece_name(count, at);
            if let Ok(Some(object)) = store.object(ObjectKind::Rule, &name) {
                // What stays takes room, and nobody reads it.
                drop(store.delete_object(ObjectKind::Rule, &name, Some(object.version)));
            }
        }
    }
}

/// Writes an object; returns it as it is then, and why it is not written.
fn put(
    name: &str,
    was: Stored,
    bytes: &[u8],
    now: UnixMillis,
    store: &Store,
) -> (Stored, Option<String>) {
    let hash = xxh3_128(bytes);
    match store.put_object(ObjectKind::Rule, name, was.version, bytes, now) {
        Ok(Ok(version)) => (Stored { version: Some(version), hash }, None),
        // It was damaged or restored meanwhile, or a crash left it: the next one goes over it.
        Ok(Err(ObjectRefusal::Conflict { found, .. })) => {
            match store.put_object(ObjectKind::Rule, name, found, bytes, now) {
                Ok(Ok(version)) => (Stored { version: Some(version), hash }, None),
                _ => (
                    Stored { version: found, hash: 0 },
                    Some(format!("{name} was changed meanwhile")),
                ),
            }
        }
        Ok(Err(refusal)) => (Stored { hash: 0, ..was }, Some(refusal.to_string())),
        Err(cause) => (Stored { hash: 0, ..was }, Some(cause.to_string())),
    }
}
