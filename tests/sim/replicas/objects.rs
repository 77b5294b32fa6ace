//! Objects and hosts of replicas: the leader decides each change, and every replica stores it.

use std::sync::Arc;

use granary::{
    model::{HostChanges, HostRecord, ListeningSpan, ProjectName, UnixMillis},
    store::{ObjectKind, ObjectRefusal, Store, StoreError},
};

use super::{Cluster, NODES};

const KINDS: [ObjectKind; 2] = [ObjectKind::Dashboard, ObjectKind::AlertState];

impl Cluster {
    /// Returns the store of the leader in a random project.
    fn project(&mut self) -> Store {
        let name = ["default", "acme"][self.rng.usize(0..2)];
        self.store(self.leader).for_project(&ProjectName::new(name).unwrap())
    }

    /// Creates, changes or deletes an object, perhaps by a version that is not the present one.
    pub(super) fn change_object(&mut self, now: UnixMillis) -> Result<bool, StoreError> {
        self.check_refusal();
        let (store, kind) = (self.project(), KINDS[self.rng.usize(0..KINDS.len())]);
        let name = self.rng.u8(0..3).to_string();
        let found = store.object(kind, &name)?.map(|object| object.version);
        let expected = if self.rng.u8(0..5) == 0 { Some(self.rng.u64(0..30)) } else { found };
        let is_deleted = self.rng.u8(0..4) == 0;
        let outcome = if is_deleted {
            store.delete_object(kind, &name, expected)?.map(|()| 0)
        } else {
            let bytes = vec![self.rng.u8(..); self.rng.usize(0..300)];
            store.put_object(kind, &name, expected, &bytes, now)?
        };
        match outcome {
            Ok(version) => {
                assert!(found == expected || self.is_unsettled, "a change of another version");
                let after = store.object(kind, &name)?.map(|object| object.version);
                assert_eq!(after, (!is_deleted).then_some(version));
                if is_deleted {
                    self.note("deleted objects");
                }
                Ok(true)
            }
            Err(ObjectRefusal::Conflict { found: present, .. }) => {
                // A record of unknown outcome may have changed the object before this change.
                assert!(present != expected || is_deleted && present.is_none());
                self.note("conflicts of objects");
                Ok(false)
            }
            Err(refusal) => panic!("{refusal}"),
        }
    }

    /// A replica that follows refuses changes.
    fn check_refusal(&mut self) {
        let node = (self.leader + self.rng.usize(1..NODES)) % NODES;
        let refused = self.store(node).put_object(KINDS[0], "x", None, b"", UnixMillis(0));
        let fault = refused.unwrap_err().to_string();
        assert!(fault.contains("does not lead"), "{fault}");
    }

    pub(super) fn keep_hosts(&mut self, now: UnixMillis) -> Result<bool, StoreError> {
        let host = |number: u8| Arc::from(format!("host{number}"));
        let record = |kept_ms| HostRecord { first_seen: now.0, kept_ms, ..HostRecord::default() };
        let first = self.rng.u8(0..4);
        let changed = (first..first + self.rng.u8(0..3))
            .map(|number| (host(number), record(self.rng.i64(0..1000))))
            .collect();
        let removed = if self.rng.bool() { vec![host(self.rng.u8(0..6))] } else { Vec::new() };
        let listening = ListeningSpan { since: 1, until: now.0, listened_ms: self.rng.i64(0..9) };
        self.project().keep_hosts(&HostChanges { changed, removed, listening })?;
        Ok(true)
    }
}
