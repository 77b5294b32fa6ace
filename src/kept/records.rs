//! Records: typed values in the store's objects, with this process as the only writer.
//!
//! A write replaces the object regardless of its version, even a damaged one. Must never know: the
//! content of records, their users.

use std::{
    marker::PhantomData,
    ops::{ControlFlow, Range},
};

use serde::{Serialize, de::DeserializeOwned};

use super::Annotation;
use crate::{
    access::{CodeRecord, KeyRecord, SessionRecord, UserRecord},
    alerts::{GroupHistory, Silence},
    model::{UnixMillis, with_causes},
    store::{ObjectKind, ObjectRefusal, Store, StoreError},
};

/// The range of all names: none begins with this character.
const ALL_NAMES: Range<&str> = "".."\u{10ffff}";

/// The result of a change: the store's refusal, or its fault.
pub(crate) type ChangeResult = Result<Result<(), ObjectRefusal>, StoreError>;

/// A name with its record, or the reason why the record cannot be read.
pub(crate) type NamedRecord<T> = (String, Result<T, String>);

/// A value that is stored as one object, as JSON unless the value has bytes of its own.
pub(crate) trait Record: Serialize + DeserializeOwned {
    /// Returns the bytes of the object.
    fn to_bytes(&self) -> Vec<u8> {
        // The keys of all maps are texts, so serialization cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Parses the bytes of an object, or returns the reason why they are invalid.
    fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|cause| cause.to_string())
    }
}

impl Record for Silence {}
impl Record for Annotation {}
impl Record for KeyRecord {}
impl Record for CodeRecord {}
impl Record for UserRecord {}
impl Record for SessionRecord {}
impl Record for GroupHistory {}

impl Record for Vec<u8> {
    fn to_bytes(&self) -> Vec<u8> {
        self.clone()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        Ok(bytes.to_vec())
    }
}

/// The records of one kind. Clones are cheap.
#[derive(Debug)]
pub(crate) struct Records<T> {
    store: Store,
    kind: ObjectKind,
    values: PhantomData<fn() -> T>,
}

impl<T> Clone for Records<T> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), ..*self }
    }
}

impl<T: Record> Records<T> {
    /// Returns the records of one kind in a store.
    pub(crate) fn new(store: &Store, kind: ObjectKind) -> Self {
        Self { store: store.clone(), kind, values: PhantomData }
    }

    /// Returns the record with a name, or the reason why it cannot be read.
    pub(crate) fn get(&self, name: &str) -> Result<Option<T>, String> {
        let found = self.store.object(self.kind, name).map_err(|cause| with_causes(&cause))?;
        found.map(|object| T::from_bytes(&object.bytes)).transpose()
    }

    /// Returns the records whose names are in a range, from the last to the first, with errors for
    /// unreadable ones.
    pub(crate) fn range(&self, names: Range<&str>) -> Result<Vec<NamedRecord<T>>, StoreError> {
        let mut found = Vec::new();
        self.store.visit_objects_backwards(self.kind, names, &mut |name, object| {
            let read = object.map(|object| T::from_bytes(&object.bytes));
            found.push((name.to_owned(), read.unwrap_or_else(|| Err("it is damaged".to_owned()))));
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Returns all readable records by name, and logs the others.
    pub(crate) fn load(&self) -> Result<Vec<(String, T)>, StoreError> {
        let readable = self.range(ALL_NAMES)?.into_iter().filter_map(|(name, read)| match read {
            Ok(record) => Some((name, record)),
            Err(cause) => {
                let kind = self.kind.as_str();
                tracing::error!(kind, name, cause, "cannot read a stored record; it is skipped");
                None
            }
        });
        Ok(readable.collect())
    }

    /// Returns the names of all records, including unreadable ones.
    pub(crate) fn names(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.store.objects(self.kind)?.into_iter().map(|listed| listed.name).collect())
    }

    /// Creates or replaces a record, durably.
    pub(crate) fn put(&self, name: &str, record: &T, now: UnixMillis) -> ChangeResult {
        let bytes = record.to_bytes();
        self.change(name, |version| {
            let put = self.store.put_object(self.kind, name, version, &bytes, now)?;
            Ok(put.map(drop))
        })
    }

    /// Removes a record, durably; a missing record counts as removed.
    pub(crate) fn remove(&self, name: &str) -> ChangeResult {
        self.change(name, |version| match self.store.delete_object(self.kind, name, version)? {
            Err(ObjectRefusal::Conflict { found: None, .. }) => Ok(Ok(())),
            outcome => Ok(outcome),
        })
    }

    /// Makes a change, which quotes the version. The version can be out of date: an earlier change of
    /// this process whose outcome was unknown is settled before the change. It is then read again.
    fn change(&self, name: &str, change: impl Fn(Option<u64>) -> ChangeResult) -> ChangeResult {
        match change(self.version(name)?)? {
            Err(ObjectRefusal::Conflict { .. }) => change(self.version(name)?),
            outcome => Ok(outcome),
        }
    }

    /// Returns the version that a change must quote; a damaged object has none.
    fn version(&self, name: &str) -> Result<Option<u64>, StoreError> {
        match self.store.object(self.kind, name) {
            Ok(found) => Ok(found.map(|object| object.version)),
            Err(StoreError::DamagedObject { .. }) => Ok(None),
            Err(cause) => Err(cause),
        }
    }
}

/// Returns the reason why a change failed, in one line; `None` when it succeeded.
pub(crate) fn fault_of(outcome: ChangeResult) -> Option<String> {
    match outcome {
        Ok(Ok(())) => None,
        Ok(Err(refusal)) => Some(refusal.to_string()),
        Err(cause) => Some(with_causes(&cause)),
    }
}
