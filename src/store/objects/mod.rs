//! Objects that people make: dashboards, rules, silences, users, annotations. Versioned records
//! with compare-and-set, in a file of their own, durable when a change is answered. In the same
//! file are the hosts that ping, which have no versions.
//!
//! Each change gives its object the next version of the whole store, so no version comes twice,
//! even when an object is deleted and created again. A change names the version that was read, and
//! is refused when that is not the present one. After an error, the change may or may not have
//! happened; a read of the object shows it. The next reader sees each change.
//!
//! A damaged object is an error to its reader, has no version, and can be created again. When the
//! whole file is damaged or lost, it is set aside or marked ([`super::Store::damaged_partitions`]),
//! and there are no objects until a snapshot is restored: code that grants rights by objects must
//! check this first. Must never know: what is in an object.

mod file;
mod hosts;
mod quotas;
mod row;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    ops::{ControlFlow, Range},
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};
use strum::{IntoStaticStr, VariantArray};

use super::{
    error::StoreError,
    file::{database::DatabaseFile, medium::Medium, names::OBJECTS_FILE},
    journal::register::Register,
};
use crate::model::{HostChanges, KeptHosts, UnixMillis};
use file::Change;
use quotas::QuotaUse;

/// Bytes of a name.
pub const OBJECT_NAME_BYTES_MAX: usize = 256;
/// Bytes of one object.
pub const OBJECT_BYTES_MAX: usize = 1 << 20;
/// Objects of one kind; beyond, none is created.
pub const OBJECTS_MAX: u64 = 10_000;
/// Bytes of all objects of one kind; beyond, none grows.
pub const OBJECTS_BYTES_MAX: u64 = 64 << 20;

/// The kind of an object, by what it holds. Each kind has its own limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ObjectKind {
    /// A page of charts.
    Dashboard,
    /// A note on charts.
    Annotation,
    /// A time in which notifications of some alerts are not sent.
    Silence,
    /// The alerts of a group of rules, as of its last evaluation.
    AlertState,
    /// Past alerts of a group of rules.
    AlertHistory,
    /// A group of alerts, with the messages that its receiver got and is owed.
    Notification,
}

impl ObjectKind {
    /// All kinds.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The name in keys and in messages.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An object as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The version, which the next change must name.
    pub version: u64,
    /// The time of the last change.
    pub changed_at: UnixMillis,
    /// The content.
    pub bytes: Vec<u8>,
}

/// An object in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// The name.
    pub name: String,
    /// The version; `None` when the object is damaged.
    pub version: Option<u64>,
}

/// Why an object was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectRefusal {
    /// The version that was named is not the present one.
    #[error("{kind} {name:?} was changed meanwhile: read it again, and change that")]
    Conflict {
        /// The object's kind.
        kind: ObjectKind,
        /// The name of the object.
        name: String,
        /// The present version; `None`: there is no such object, or it is damaged.
        found: Option<u64>,
    },
    /// The name is none.
    #[error(
        "the name of a {0} is empty, has control characters, or more than {OBJECT_NAME_BYTES_MAX} bytes"
    )]
    BadName(ObjectKind),
    /// The object is too large.
    #[error("{bytes} bytes are more than a {kind} may have ({OBJECT_BYTES_MAX}): make it smaller")]
    TooLarge {
        /// The object's kind.
        kind: ObjectKind,
        /// Bytes of the object.
        bytes: usize,
    },
    /// The objects of this kind have reached their quota.
    #[error(
        "the quota is reached: each kind has at most {OBJECTS_MAX} objects, and {OBJECTS_BYTES_MAX} \
         bytes in all; delete some"
    )]
    QuotaReached,
}

/// The objects of a store.
#[derive(Debug)]
pub(crate) struct Objects {
    medium: Arc<dyn Medium>,
    register: Arc<Register>,
    /// `None` until the first object is made.
    file: RwLock<Option<Arc<DatabaseFile>>>,
    /// Held through each change; `None` when the file is to be counted.
    used: Mutex<Option<QuotaUse>>,
}

impl Objects {
    /// Opens the existing file. A damaged file is set aside.
    pub(crate) fn open(
        medium: Arc<dyn Medium>,
        register: Arc<Register>,
    ) -> Result<Self, StoreError> {
        let fault =
            |cause| StoreError::Io { operation: "look for", file: OBJECTS_FILE.to_owned(), cause };
        let found = if medium.exists(OBJECTS_FILE).map_err(fault)? {
            match file::open(&medium) {
                Err(fault) if fault.is_damage() => {
                    register.set_aside(OBJECTS_FILE, &fault)?;
                    None
                }
                outcome => Some(Arc::new(outcome?)),
            }
        } else {
            file::remove_unfinished(&medium)?;
            None
        };
        if found.is_some() {
            register.note(OBJECTS_FILE)?;
        }
        Ok(Self { medium, register, file: RwLock::new(found), used: Mutex::default() })
    }

    /// An object; `None` when there is none.
    pub(crate) fn get(&self, kind: ObjectKind, name: &str) -> Result<Option<Object>, StoreError> {
        self.read(None, |file| file::get(file, kind, name))
    }

    /// The objects of a kind, by name.
    pub(crate) fn list(&self, kind: ObjectKind) -> Result<Vec<ListedObject>, StoreError> {
        self.read(Vec::new(), |file| file::list(file, kind))
    }

    /// Shows the objects of a kind whose names are in a range, by name from the last to the first.
    pub(crate) fn visit_backwards(
        &self,
        kind: ObjectKind,
        names: Range<&str>,
        visit: &mut dyn FnMut(&str, Option<Object>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        if names.is_empty() {
            return Ok(());
        }
        self.read((), |file| file::visit_backwards(file, kind, names, visit))
    }

    /// Makes or changes an object; returns its new version.
    pub(crate) fn put(
        &self,
        kind: ObjectKind,
        name: &str,
        expected: Option<u64>,
        bytes: &[u8],
        now: UnixMillis,
    ) -> Result<Result<u64, ObjectRefusal>, StoreError> {
        if name.is_empty() || name.len() > OBJECT_NAME_BYTES_MAX || name.contains(char::is_control)
        {
            return Ok(Err(ObjectRefusal::BadName(kind)));
        }
        if bytes.len() > OBJECT_BYTES_MAX {
            return Ok(Err(ObjectRefusal::TooLarge { kind, bytes: bytes.len() }));
        }
        self.change(&Change { kind, name, expected, new: Some((bytes, now)) })
    }

    /// Deletes an object of a version; a damaged one has none.
    pub(crate) fn delete(
        &self,
        kind: ObjectKind,
        name: &str,
        expected: Option<u64>,
    ) -> Result<Result<(), ObjectRefusal>, StoreError> {
        Ok(self.change(&Change { kind, name, expected, new: None })?.map(drop))
    }

    /// The hosts as they were kept last; damaged ones are left out.
    pub(crate) fn hosts(&self) -> Result<KeptHosts, StoreError> {
        self.read(KeptHosts::default(), |file| hosts::read(file, &mut |_| {}))
    }

    /// Keeps what changed of hosts.
    pub(crate) fn keep_hosts(&self, changes: &HostChanges) -> Result<(), StoreError> {
        let file = self.file.read().clone();
        let file = file.map_or_else(|| self.create(), Ok)?;
        self.or_set_aside(&file, hosts::write(&file, changes))
    }

    /// Checks every object, the counts, and every host; hands out the faults.
    pub(crate) fn check(&self, fault: &mut dyn FnMut(String)) -> Result<(), StoreError> {
        self.read((), |file| {
            file::check(file, fault)?;
            hosts::read(file, fault).map(drop)
        })
    }

    /// The largest number of objects of a kind, and the largest bytes of a kind.
    pub(crate) fn size(&self) -> Result<(u64, u64), StoreError> {
        if let Some(used) = &*self.used.lock() {
            return Ok(used.largest());
        }
        self.read((0, 0), |file| Ok(file::quota_use(file)?.largest()))
    }

    /// Copies the file, if there is one; returns its bytes.
    pub(crate) fn copy<T>(&self, copy: impl FnOnce() -> T) -> Result<Option<T>, StoreError> {
        let file = self.file.read().clone();
        file.map(|file| file.while_unwritten(copy)).transpose()
    }

    /// Bytes that they take on the medium.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        let is_there = self.file.read().is_some();
        if is_there { self.medium.allocated_bytes(OBJECTS_FILE).unwrap_or(0) } else { 0 }
    }

    fn read<T>(
        &self,
        nothing: T,
        read: impl FnOnce(&DatabaseFile) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some(file) = self.file.read().clone() else { return Ok(nothing) };
        self.or_set_aside(&file, read(&file))
    }

    fn change(&self, change: &Change<'_>) -> Result<Result<u64, ObjectRefusal>, StoreError> {
        let file = self.file.read().clone();
        let file = match file {
            Some(file) => file,
            // Nothing is there to be changed.
            None if change.new.is_none() || change.expected.is_some() => {
                return Ok(Err(change.conflict(None)));
            }
            None => self.create()?,
        };
        let mut used = self.used.lock();
        // After an error, the use is unknown: the change may have happened or not.
        let before = match used.take() {
            Some(used) => used,
            None => self.or_set_aside(&file, file::quota_use(&file))?,
        };
        let mut after = before.clone();
        let outcome = self.or_set_aside(&file, change.make(&file, &mut after))?;
        *used = Some(if outcome.is_ok() { after } else { before });
        Ok(outcome)
    }

    /// Makes the file, or opens one whose making went wrong, and registers it before anything is in
    /// it.
    fn create(&self) -> Result<Arc<DatabaseFile>, StoreError> {
        let mut current = self.file.write();
        if let Some(file) = &*current {
            return Ok(file.clone());
        }
        let fault =
            |cause| StoreError::Io { operation: "look for", file: OBJECTS_FILE.to_owned(), cause };
        let is_there = self.medium.exists(OBJECTS_FILE).map_err(fault)?;
        let file = if is_there { file::open(&self.medium) } else { file::create(&self.medium) };
        let file = Arc::new(file?);
        self.register.note(OBJECTS_FILE)?;
        *current = Some(file.clone());
        Ok(file)
    }

    /// A damaged file is set aside, so that the next attempt finds none.
    fn or_set_aside<T>(
        &self,
        file: &Arc<DatabaseFile>,
        outcome: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Err(fault) = &outcome
            && fault.is_damage_of(OBJECTS_FILE)
        {
            let mut current = self.file.write();
            if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, file)) {
                self.register.set_aside(OBJECTS_FILE, fault)?;
                *current = None;
            }
        }
        outcome
    }
}
