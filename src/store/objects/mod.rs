//! Objects: versioned records of people, such as dashboards and silences, and of alerts. They are
//! stored in a separate file and changed by compare-and-set; a change is durable when its response
//! is sent. The file also contains the hosts that ping, which have no versions.
//!
//! Each change assigns the next version of the project to its object, so no version is used
//! twice, even when an object is deleted and created again. A change contains the version that its
//! author read, and is refused when this is not the current version. After an error, the change may
//! or may not be stored; reading the object shows it. Every reader sees all earlier changes.
//!
//! A damaged object is an error to its reader, has no version, and can be created again. When the
//! whole file is damaged or lost, it is set aside or marked ([`super::Store::damaged_partitions`]),
//! and no objects exist until a snapshot is restored: code that grants rights by objects must check
//! this first. Must never know: the content of objects.

mod change;
mod downgrade;
mod file;
mod hosts;
mod object;
mod quotas;
mod replicated;
mod row;
#[cfg(test)]
mod tests;

use std::{
    ops::{ControlFlow, Range},
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};

use super::{
    error::StoreError,
    file::{database::DatabaseFile, medium::Medium, names::OBJECTS_FILE},
    journal::register::Register,
};
use crate::model::{HostChanges, ProjectName, StoredHosts, UnixMillis};
use change::Change;
pub(crate) use downgrade::{project_with_objects, remove_other_projects};
pub(crate) use file::remove_all;
pub use object::{
    KEYS_MAX, ListedObject, OBJECT_BYTES_MAX, OBJECT_NAME_BYTES_MAX, OBJECTS_BYTES_MAX,
    OBJECTS_MAX, Object, ObjectKind, ObjectRefusal,
};
use quotas::QuotaUse;
use replicated::Place;
pub(crate) use replicated::{ChangeLog, Decided, check_rows, not_leading};

/// The objects of a store.
#[derive(Debug)]
pub(crate) struct Objects {
    medium: Arc<dyn Medium>,
    register: Arc<Register>,
    /// The file; `None` until the first object is created.
    file: RwLock<Option<Arc<DatabaseFile>>>,
    /// The use of quotas, locked during each change; `None` when it must be counted in the file.
    used: Mutex<Option<QuotaUse>>,
    /// The place in which changes become durable.
    place: RwLock<Place>,
}

impl Objects {
    /// Opens the existing file. A damaged file is set aside.
    pub(crate) fn open(
        medium: Arc<dyn Medium>,
        register: Arc<Register>,
    ) -> Result<Self, StoreError> {
        let fault =
            |cause| StoreError::Io { operation: "find", file: OBJECTS_FILE.to_owned(), cause };
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
        let (file, used, place) = (RwLock::new(found), Mutex::default(), RwLock::default());
        Ok(Self { medium, register, file, used, place })
    }

    /// Returns an object; `None` when it does not exist.
    pub(crate) fn get(
        &self,
        project: &ProjectName,
        kind: ObjectKind,
        name: &str,
    ) -> Result<Option<Object>, StoreError> {
        // The stored name of another project's object is no name.
        if !row::is_name(name) {
            return Ok(None);
        }
        self.read(None, |file| file::get(file, project, kind, name))
    }

    /// Returns the objects of a kind, by name.
    pub(crate) fn list(
        &self,
        project: &ProjectName,
        kind: ObjectKind,
    ) -> Result<Vec<ListedObject>, StoreError> {
        self.read(Vec::new(), |file| file::list(file, project, kind))
    }

    /// Visits the objects of a kind whose names are in a range, by name from the last to the first.
    pub(crate) fn visit_backwards(
        &self,
        project: &ProjectName,
        kind: ObjectKind,
        names: Range<&str>,
        visit: &mut dyn FnMut(&str, Option<Object>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        if names.is_empty() {
            return Ok(());
        }
        self.read((), |file| file::visit_backwards(file, (project, kind), names, visit))
    }

    /// Creates or changes an object; returns its new version.
    pub(crate) fn put(
        &self,
        (project, kind, name): (&ProjectName, ObjectKind, &str),
        expected: Option<u64>,
        bytes: &[u8],
        now: UnixMillis,
    ) -> Result<Result<u64, ObjectRefusal>, StoreError> {
        if !row::is_name(name) {
            return Ok(Err(ObjectRefusal::BadName(kind)));
        }
        if bytes.len() > OBJECT_BYTES_MAX {
            return Ok(Err(ObjectRefusal::TooLarge { kind, bytes: bytes.len() }));
        }
        self.change(&Change { project, kind, name, expected, new: Some((bytes, now)) })
    }

    /// Deletes an object that has the version `expected`; a damaged object has no version.
    pub(crate) fn delete(
        &self,
        project: &ProjectName,
        kind: ObjectKind,
        name: &str,
        expected: Option<u64>,
    ) -> Result<Result<(), ObjectRefusal>, StoreError> {
        let change = Change { project, kind, name, expected, new: None };
        if !row::is_name(name) {
            return Ok(Err(change.conflict(None)));
        }
        Ok(self.change(&change)?.map(drop))
    }

    /// Returns the stored hosts, without damaged ones.
    pub(crate) fn hosts(&self, project: &ProjectName) -> Result<StoredHosts, StoreError> {
        let mut hosts = self.read(StoredHosts::default(), |file| hosts::read(file, &mut |_| {}))?;
        hosts.records.retain_mut(|(name, _)| {
            let own = project.own_name(name).map(Into::into);
            own.map(|own| *name = own).is_some()
        });
        Ok(hosts)
    }

    /// Stores changes of hosts.
    pub(crate) fn keep_hosts(
        &self,
        project: &ProjectName,
        changes: &HostChanges,
    ) -> Result<(), StoreError> {
        if let Some(log) = self.log()? {
            return Self::append_hosts(&*log, project, changes);
        }
        let file = self.file.read().clone();
        let file = file.map_or_else(|| self.create(), Ok)?;
        self.or_set_aside(&file, hosts::write(&file, project, changes))
    }

    /// Checks every object, the counts, and every host; `fault` gets each fault.
    pub(crate) fn check(&self, fault: &mut dyn FnMut(String)) -> Result<(), StoreError> {
        self.read((), |file| {
            file::check(file, fault)?;
            hosts::read(file, fault).map(drop)
        })
    }

    /// Returns the largest number of objects of any kind, and the largest size of any kind in
    /// bytes.
    pub(crate) fn size(&self) -> Result<(u64, u64), StoreError> {
        if let Some(used) = &*self.used.lock() {
            return Ok(used.largest());
        }
        self.read((0, 0), |file| Ok(file::quota_use(file)?.largest()))
    }

    /// Runs a function that copies the file, while nobody writes it; `None` when there is no file.
    pub(crate) fn copy<T>(&self, copy: impl FnOnce() -> T) -> Result<Option<T>, StoreError> {
        let file = self.file.read().clone();
        file.map(|file| file.while_unwritten(copy)).transpose()
    }

    /// Returns the bytes of the file on the medium.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        let exists = self.file.read().is_some();
        if exists { self.medium.allocated_bytes(OBJECTS_FILE).unwrap_or(0) } else { 0 }
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
        if let Some(log) = self.log()? {
            return self.append_object(&*log, change);
        }
        self.with_file(change, |file, used| change.make(file, used))
    }

    /// Passes the file and the use of quotas to a function, which may change them.
    fn with_file<T>(
        &self,
        change: &Change<'_>,
        run: impl FnOnce(&DatabaseFile, &mut QuotaUse) -> Result<Result<T, ObjectRefusal>, StoreError>,
    ) -> Result<Result<T, ObjectRefusal>, StoreError> {
        let file = self.file.read().clone();
        let file = match file {
            Some(file) => file,
            // Without a file, there is no object to change.
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
        let outcome = self.or_set_aside(&file, run(&file, &mut after))?;
        *used = Some(if outcome.is_ok() { after } else { before });
        Ok(outcome)
    }

    /// Creates the file, or opens the file of an earlier attempt, and registers it while it is
    /// empty.
    fn create(&self) -> Result<Arc<DatabaseFile>, StoreError> {
        let mut current = self.file.write();
        if let Some(file) = &*current {
            return Ok(file.clone());
        }
        let fault =
            |cause| StoreError::Io { operation: "find", file: OBJECTS_FILE.to_owned(), cause };
        let exists = self.medium.exists(OBJECTS_FILE).map_err(fault)?;
        let file = if exists { file::open(&self.medium) } else { file::create(&self.medium) };
        let file = Arc::new(file?);
        self.register.note(OBJECTS_FILE)?;
        *current = Some(file.clone());
        Ok(file)
    }

    /// Passes on an outcome. When damage of the file caused an error, the file is set aside, so
    /// that the next attempt finds no file.
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
