//! The file of objects, `objects.redb`: each change is one durable transaction.
//!
//! Must never know: who changes an object, the content of objects.

use std::{
    collections::BTreeMap,
    ops::{ControlFlow, Range},
    sync::Arc,
};

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};

use super::{ListedObject, Object, ObjectKind, quotas::QuotaUse, row};
use crate::{
    model::{DEFAULT_PROJECT, ProjectName},
    store::{
        error::StoreError,
        file::{
            database::{DatabaseFile, FileOptions, UNFINISHED},
            medium::Medium,
            names::OBJECTS_FILE,
            version::{self, VERSION_KEY},
        },
        journal::{checked::stored_in, record::rows::RowChange},
    },
};

pub(super) const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// The hosts that ping, by name.
pub(super) const HOSTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("hosts");
/// The key of the last version that was assigned to an object. The stored name contains the
/// project, so that no project counts the changes of others.
pub(super) const LAST_KEY: &str = "last_version";
/// The key of the number of objects.
const COUNT_KEY: &str = "count";
/// The key of the bytes of all rows, without names.
const BYTES_KEY: &str = "bytes";
/// The key of the last record whose changes are in the file of a replica.
pub(super) const THROUGH_KEY: &str = "changes_through";
/// The operation that errors of a change name.
pub(super) const OPERATION: &str = "change an object";
const OPTIONS: FileOptions = FileOptions { cache_bytes: 1 << 20, quick_repair: true };

/// Opens the existing file.
pub(super) fn open(medium: &Arc<dyn Medium>) -> Result<DatabaseFile, StoreError> {
    let file = DatabaseFile::open(medium, OBJECTS_FILE.to_owned(), OPTIONS)?;
    let found = read(&file, |txn| {
        txn.open_table(OBJECTS).map_err(fail("open"))?;
        let meta = txn.open_table(META).map_err(fail("open"))?;
        Ok(meta.get(VERSION_KEY).map_err(fail("open"))?.map_or(0, |guard| guard.value()))
    })?;
    version::check(OBJECTS_FILE, found, medium.format())?;
    if found != medium.format() {
        file.transact("upgrade the format", |txn| create_tables(txn, medium.format()))?;
    }
    Ok(file)
}

/// Creates the file, which must not exist.
pub(super) fn create(medium: &Arc<dyn Medium>) -> Result<DatabaseFile, StoreError> {
    let name = OBJECTS_FILE.to_owned();
    DatabaseFile::create(medium, name, OPTIONS, |_, txn| create_tables(txn, medium.format()))
}

/// Removes a file whose creation was interrupted; it never contained objects.
pub(super) fn remove_unfinished(medium: &Arc<dyn Medium>) -> Result<(), StoreError> {
    let file = format!("{OBJECTS_FILE}{UNFINISHED}");
    medium.remove(&file).map_err(|cause| StoreError::Io { operation: "remove", file, cause })
}

fn create_tables(txn: &WriteTransaction, format: u64) -> Result<(), StoreError> {
    const OPERATION: &str = "create tables";
    let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
    meta.insert(VERSION_KEY, format).map_err(fail(OPERATION))?;
    txn.open_table(OBJECTS).map_err(fail(OPERATION))?;
    txn.open_table(HOSTS).map_err(fail(OPERATION))?;
    Ok(())
}

pub(super) fn fail<E: Into<redb::Error>>(operation: &'static str) -> impl FnOnce(E) -> StoreError {
    StoreError::redb(operation, OBJECTS_FILE)
}

pub(super) fn read<T>(
    file: &DatabaseFile,
    read: impl FnOnce(&ReadTransaction) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let txn = file.read()?;
    file.guard("read", || read(&txn))
}

/// Returns an object; `None` when it does not exist.
pub(super) fn get(
    file: &DatabaseFile,
    project: &ProjectName,
    kind: ObjectKind,
    name: &str,
) -> Result<Option<Object>, StoreError> {
    read(file, |txn| {
        let objects = txn.open_table(OBJECTS).map_err(fail("read"))?;
        let key = row::key(project, kind, name);
        let Some(found) = objects.get(&*key).map_err(fail("read"))? else { return Ok(None) };
        let object = row::decode(found.value(), &key).ok_or_else(|| {
            let file = OBJECTS_FILE.to_owned();
            StoreError::DamagedObject { file, object: format!("{} {name:?}", kind.noun()) }
        })?;
        Ok(Some(object))
    })
}

/// Returns the objects of a kind in a project, by name.
pub(super) fn list(
    file: &DatabaseFile,
    project: &ProjectName,
    kind: ObjectKind,
) -> Result<Vec<ListedObject>, StoreError> {
    read(file, |txn| {
        let objects = txn.open_table(OBJECTS).map_err(fail("read"))?;
        let keys = row::keys(project, kind);
        let mut listed = Vec::new();
        for entry in objects.range(&*keys.start..&*keys.end).map_err(fail("read"))? {
            let (key, found) = entry.map_err(fail("read"))?;
            let (_, _, name) = row::parse_key(key.value()).unwrap_or((DEFAULT_PROJECT, kind, ""));
            let name = name.to_owned();
            let version = row::decode(found.value(), key.value()).map(|object| object.version);
            listed.push(ListedObject { name, version });
        }
        Ok(listed)
    })
}

/// Visits the objects of a kind in a project whose names are in a range, by name from the last to
/// the first; `None` stands for a damaged object.
pub(super) fn visit_backwards(
    file: &DatabaseFile,
    (project, kind): (&ProjectName, ObjectKind),
    names: Range<&str>,
    visit: &mut dyn FnMut(&str, Option<Object>) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    read(file, |txn| {
        let objects = txn.open_table(OBJECTS).map_err(fail("read"))?;
        let keys = row::keys(project, kind);
        let from = row::key(project, kind, names.start).max(keys.start);
        let to = row::key(project, kind, names.end).min(keys.end);
        if from >= to {
            return Ok(());
        }
        for entry in objects.range(&*from..&*to).map_err(fail("read"))?.rev() {
            let (key, found) = entry.map_err(fail("read"))?;
            let (_, _, name) = row::parse_key(key.value()).unwrap_or((DEFAULT_PROJECT, kind, ""));
            if visit(name, row::decode(found.value(), key.value())).is_break() {
                break;
            }
        }
        Ok(())
    })
}

/// Returns the last record whose changes are in the file of a replica.
pub(super) fn through(file: &DatabaseFile) -> Result<u64, StoreError> {
    read(file, |txn| {
        let meta = txn.open_table(META).map_err(fail("read"))?;
        let stored = stored_in(OBJECTS_FILE, &meta, THROUGH_KEY)?;
        if stored.is_sound(THROUGH_KEY) {
            return Ok(stored.number.unwrap_or(0));
        }
        let problem = format!("the number {THROUGH_KEY} does not match its checksum");
        Err(StoreError::Corrupt { file: OBJECTS_FILE.to_owned(), problem })
    })
}

/// Checks every row, and the counts.
pub(super) fn check(file: &DatabaseFile, fault: &mut dyn FnMut(String)) -> Result<(), StoreError> {
    read(file, |txn| {
        let objects = txn.open_table(OBJECTS).map_err(fail("read"))?;
        let (mut count, mut bytes) = (0, 0);
        let mut last: BTreeMap<Arc<str>, u64> = BTreeMap::new();
        for entry in objects.iter().map_err(fail("read"))? {
            let (key, found) = entry.map_err(fail("read"))?;
            let key = key.value();
            count += 1;
            bytes += found.value().len() as u64;
            match (row::decode(found.value(), key), row::parse_key(key)) {
                (Some(object), Some((project, ..))) => {
                    let project = ProjectName::new(project).unwrap_or_default();
                    let last = last.entry(project.stored_name(LAST_KEY)).or_default();
                    *last = object.version.max(*last);
                }
                (Some(_), None) => fault(format!("object {key:?}: its kind is unknown")),
                (None, _) => fault(format!("object {key:?}: its checksum does not fit")),
            }
        }
        let meta = txn.open_table(META).map_err(fail("read"))?;
        let value = |key: &str| Ok::<_, StoreError>(counted(meta.get(key).map_err(fail("read"))?));
        let (stated_count, stated_bytes) = (value(COUNT_KEY)?, value(BYTES_KEY)?);
        if (stated_count, stated_bytes) != (count, bytes) {
            fault(format!(
                "the file states {stated_count} objects with {stated_bytes} bytes, but contains \
                 {count} with {bytes}"
            ));
        }
        if !stored_in(OBJECTS_FILE, &meta, THROUGH_KEY)?.is_sound(THROUGH_KEY) {
            fault(format!("the number {THROUGH_KEY} does not match its checksum"));
        }
        for (key, last) in last {
            let assigned = value(&key)?;
            if last > assigned {
                fault(format!(
                    "an object has version {last}, but {key:?}, the last assigned version, is \
                     {assigned}"
                ));
            }
        }
        Ok(())
    })
}

/// Returns the number and bytes of the objects of each kind in each project.
pub(super) fn quota_use(file: &DatabaseFile) -> Result<QuotaUse, StoreError> {
    read(file, |txn| {
        let objects = txn.open_table(OBJECTS).map_err(fail("read"))?;
        let mut used = QuotaUse::default();
        for entry in objects.iter().map_err(fail("read"))? {
            let (key, found) = entry.map_err(fail("read"))?;
            if let Some((project, kind, _)) = row::parse_key(key.value()) {
                used.add((project, kind), found.value().len());
            }
        }
        Ok(used)
    })
}

pub(super) fn counted(found: Option<redb::AccessGuard<'_, u64>>) -> u64 {
    found.map_or(0, |guard| guard.value())
}

/// Writes or removes the row of an object, with the last version that was assigned; returns the
/// length of the row before.
pub(super) fn write(
    objects: &mut Table<'_, &'static str, &'static [u8]>,
    meta: &mut Table<'_, &'static str, u64>,
    change: &RowChange,
    last: (&str, u64),
) -> Result<Option<usize>, StoreError> {
    let before = match &change.row {
        Some(row) => objects.insert(&*change.key, &**row),
        None => objects.remove(&*change.key),
    };
    let before = before.map_err(fail(OPERATION))?.map(|row| row.value().len());
    let value = |key| Ok::<_, StoreError>(counted(meta.get(key).map_err(fail(OPERATION))?));
    let (mut count, mut bytes) = (value(COUNT_KEY)?, value(BYTES_KEY)?);
    if let Some(length) = before {
        count = count.saturating_sub(1);
        bytes = bytes.saturating_sub(length as u64);
    }
    if let Some(row) = &change.row {
        count += 1;
        bytes += row.len() as u64;
    }
    set(meta, last, count, bytes)?;
    Ok(before)
}

/// Removes all objects of a kind, and returns their number.
pub(crate) fn remove_all(txn: &WriteTransaction, kind: ObjectKind) -> Result<u64, StoreError> {
    // In ASCII, '0' follows '/': the range contains all names of the kind.
    remove_range(txn, &format!("{kind}/"), &format!("{kind}0"))
}

/// Removes all objects whose keys are in a range, and returns their number.
pub(super) fn remove_range(
    txn: &WriteTransaction,
    from: &str,
    to: &str,
) -> Result<u64, StoreError> {
    let mut objects = txn.open_table(OBJECTS).map_err(fail(OPERATION))?;
    let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
    let value = |key| Ok::<_, StoreError>(counted(meta.get(key).map_err(fail(OPERATION))?));
    let (last, count, bytes) = (value(LAST_KEY)?, value(COUNT_KEY)?, value(BYTES_KEY)?);
    let (mut removed, mut removed_bytes) = (0, 0);
    let found = objects.extract_from_if(from..to, |_, _| true).map_err(fail(OPERATION))?;
    for entry in found {
        let (_, row) = entry.map_err(fail(OPERATION))?;
        removed += 1;
        removed_bytes += row.value().len() as u64;
    }
    let (count, bytes) = (count.saturating_sub(removed), bytes.saturating_sub(removed_bytes));
    set(&mut meta, (LAST_KEY, last), count, bytes)?;
    Ok(removed)
}

fn set(
    meta: &mut Table<'_, &'static str, u64>,
    (last_key, last): (&str, u64),
    count: u64,
    bytes: u64,
) -> Result<(), StoreError> {
    for (key, value) in [(last_key, last), (COUNT_KEY, count), (BYTES_KEY, bytes)] {
        meta.insert(key, value).map_err(fail(OPERATION))?;
    }
    Ok(())
}
