//! Objects that are changed by compare-and-set, the list of hosts, and the state of a group of
//! rules, which is stored after the samples of an evaluation.

use std::{collections::BTreeMap, sync::Arc};

use granary::{
    model::{HostChanges, HostRecord, ListeningSpan},
    store::{ObjectKind, ObjectRefusal, Store, StoreError},
};

use crate::history::History;

const KINDS: [ObjectKind; 3] = [ObjectKind::Dashboard, ObjectKind::AlertState, ObjectKind::Silence];
/// The state of the group of rules: the number of its last evaluation.
pub(crate) const GROUP: (ObjectKind, &str) = (ObjectKind::AlertState, "group");

/// A request that changes the file of objects.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// Replaces or deletes an object.
    Object { kind: ObjectKind, name: String, expected: Option<u64>, bytes: Option<Vec<u8>> },
    /// Stores hosts.
    Hosts(HostChanges),
}

/// The answer to a request.
#[derive(Debug, PartialEq)]
enum Answer {
    Done,
    Version(u64),
    Conflict(Option<u64>),
}

impl Change {
    fn execute(&self, store: &Store, history: &History) -> Result<Answer, StoreError> {
        let refused = |refusal| match refusal {
            ObjectRefusal::Conflict { found, .. } => Answer::Conflict(found),
            ObjectRefusal::BadName(_)
            | ObjectRefusal::TooLarge { .. }
            | ObjectRefusal::QuotaReached => {
                panic!("{refusal}")
            }
        };
        match self {
            Self::Object { kind, name, expected, bytes: Some(bytes) } => {
                let changed =
                    store.put_object(*kind, name, *expected, bytes, history.clock.clock())?;
                Ok(changed.map_or_else(refused, Answer::Version))
            }
            Self::Object { kind, name, expected, bytes: None } => {
                let deleted = store.delete_object(*kind, name, *expected)?;
                Ok(deleted.map_or_else(refused, |()| Answer::Done))
            }
            Self::Hosts(changes) => store.keep_hosts(changes).map(|()| Answer::Done),
        }
    }
}

/// The expected contents of the file.
#[derive(Debug, Clone, Default, PartialEq)]
struct Contents {
    last_version: u64,
    objects: BTreeMap<(ObjectKind, String), (u64, Vec<u8>)>,
    hosts: BTreeMap<Arc<str>, HostRecord>,
    listening: ListeningSpan,
}

impl Contents {
    fn version(&self, kind: ObjectKind, name: &str) -> Option<u64> {
        self.objects.get(&(kind, name.to_owned())).map(|(version, _)| *version)
    }

    fn apply(&mut self, change: &Change) -> Answer {
        match change {
            Change::Object { kind, name, expected, bytes } => {
                let found = self.version(*kind, name);
                if found != *expected || (found.is_none() && bytes.is_none()) {
                    return Answer::Conflict(found);
                }
                let key = (*kind, name.clone());
                let Some(bytes) = bytes else {
                    self.objects.remove(&key);
                    return Answer::Done;
                };
                self.last_version += 1;
                self.objects.insert(key, (self.last_version, bytes.clone()));
                Answer::Version(self.last_version)
            }
            Change::Hosts(changes) => {
                self.hosts.extend(changes.changed.iter().cloned());
                for name in &changes.removed {
                    self.hosts.remove(name);
                }
                self.listening = changes.listening;
                Answer::Done
            }
        }
    }
}

/// The possible contents of the file: each failed change may be present or absent.
#[derive(Debug, Clone)]
pub(crate) struct Objects(Vec<Contents>);

impl Default for Objects {
    fn default() -> Self {
        Self(vec![Contents::default()])
    }
}

impl Objects {
    fn succeeded(&mut self, change: &Change, answer: &Answer) {
        let mut expected = Vec::new();
        self.0.retain_mut(|contents| {
            expected.push(contents.apply(change));
            expected.last() == Some(answer)
        });
        assert!(!self.0.is_empty(), "{answer:?} instead of {expected:?} for {change:?}");
    }

    fn failed(&mut self, change: &Change) {
        for mut contents in self.0.clone() {
            contents.apply(change);
            if !self.0.contains(&contents) {
                self.0.push(contents);
            }
        }
    }

    /// Keeps the possible contents that equal the contents of the store.
    pub(crate) fn check(&mut self, store: &Store) -> Result<(), StoreError> {
        let mut found = BTreeMap::new();
        for kind in KINDS {
            for entry in store.objects(kind)? {
                let object = store.object(kind, &entry.name)?.expect("it is listed");
                assert_eq!(entry.version, Some(object.version));
                found.insert((kind, entry.name), (object.version, object.bytes));
            }
        }
        let hosts = store.hosts()?;
        let records: BTreeMap<_, _> = hosts.records.into_iter().collect();
        let before = self.0.clone();
        self.0.retain(|contents| {
            contents.objects == found
                && contents.hosts == records
                && contents.listening == hosts.listening
        });
        let contents_found = (found, records, hosts.listening);
        assert!(!self.0.is_empty(), "{contents_found:?} instead of {before:?}");
        Ok(())
    }
}

impl History {
    /// Changes or reads objects, as people and roles do.
    pub(crate) fn use_objects(&mut self) {
        match self.rng.u8(0..8) {
            0..4 => self.change_object(),
            4 => self.keep_hosts(),
            5..7 => self.evaluate(),
            _ => self.compare_objects(),
        }
    }

    pub(crate) fn compare_objects(&mut self) {
        let mut objects = std::mem::take(&mut self.objects);
        let checked = objects.check(&self.store());
        self.objects = objects;
        match checked {
            Ok(()) => self.tally.note("objects checked"),
            Err(cause) => self.expect_fault(&cause, "failed views"),
        }
    }

    /// Returns the version and the content of an object, or `None` if the read failed.
    #[expect(clippy::option_option, reason = "an unreadable object may exist")]
    pub(crate) fn object(
        &mut self,
        kind: ObjectKind,
        name: &str,
    ) -> Option<Option<(u64, Vec<u8>)>> {
        match self.store().object(kind, name) {
            Ok(found) => Some(found.map(|object| (object.version, object.bytes))),
            Err(cause) => {
                self.expect_fault(&cause, "failed views");
                None
            }
        }
    }

    fn change_object(&mut self) {
        let kind = KINDS[self.rng.usize(0..KINDS.len())];
        let name = self.rng.u8(0..3).to_string();
        let Some(found) = self.object(kind, &name) else { return };
        let is_stale = self.rng.u8(0..4) == 0;
        let expected = if is_stale && self.rng.bool() {
            Some(self.rng.u64(0..20))
        } else if is_stale {
            None
        } else {
            found.map(|(version, _)| version)
        };
        let bytes = (self.rng.u8(0..4) > 0).then(|| vec![self.rng.u8(..); self.rng.usize(0..300)]);
        self.execute(&Change::Object { kind, name, expected, bytes });
    }

    fn keep_hosts(&mut self) {
        let host = |number: u8| Arc::from(format!("host{number}"));
        let record = |history: &mut Self| HostRecord {
            first_seen: history.clock.clock().0,
            kept_ms: history.rng.i64(0..1000),
            agents: Vec::new(),
            events: Vec::new(),
        };
        let changed = (0..self.rng.u8(0..3)).map(|_| (host(self.rng.u8(0..4)), record(self)));
        let changed: BTreeMap<_, _> = changed.collect();
        let removed = self.rng.bool().then(|| host(self.rng.u8(0..4)));
        let until = self.clock.clock().0;
        self.execute(&Change::Hosts(HostChanges {
            changed: changed.into_iter().collect(),
            removed: removed.into_iter().collect(),
            listening: ListeningSpan { since: 1, until, listened_ms: 2 },
        }));
    }

    /// Makes a change and reports its outcome to the oracle.
    pub(crate) fn execute(&mut self, change: &Change) {
        let outcome = change.execute(&self.store(), self);
        self.trace(|| format!("{change:?}: {outcome:?}"));
        match outcome {
            Ok(answer) => {
                self.tally.note(match answer {
                    Answer::Conflict(_) => "conflicts of objects",
                    Answer::Done | Answer::Version(_) => "changed objects",
                });
                self.objects.succeeded(change, &answer);
            }
            Err(cause) => {
                self.objects.failed(change);
                self.expect_fault(&cause, "failed changes of objects");
            }
        }
    }
}
