//! Objects of a replica: the leader decides each change, the log makes it durable as rows, and
//! every replica stores the rows.
//!
//! One durable transaction stores the rows of a record with its number, before later records apply.
//! Therefore the file has all changes up to the last checkpoint, and a start that reads later
//! records again skips those that the file has. Must never know: where the log is, who leads.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use redb::{ReadableTable, Table, WriteTransaction};

use super::{
    ObjectKind, ObjectRefusal, Objects,
    change::{Accepted, Change},
    file::{HOSTS, LAST_KEY, META, OBJECTS, THROUGH_KEY, counted, fail, read, through, write},
    hosts,
    quotas::QuotaUse,
    row,
};
use crate::{
    model::{HostChanges, ProjectName},
    store::{
        error::{SHARED_LOG, StoreError},
        file::{
            database::DatabaseFile,
            names::{JOURNAL_FILE, OBJECTS_FILE},
            version::VERSION_KEY,
        },
        journal::{
            checked::{check_key, set_number},
            record::rows::{HostRows, RowChange},
        },
    },
};

/// The size from which changes of hosts continue in another record, in bytes: half of a record's.
const HOSTS_BYTES: usize = 4 << 20;
const OPERATION: &str = "store the objects of a record";

/// The place in which changes become durable.
#[derive(Debug, Default)]
pub(super) enum Place {
    /// The file of an embedded store.
    #[default]
    File,
    /// A log that another store leads.
    Followed,
    /// The log that this store leads while its appender exists.
    Led(Weak<dyn ChangeLog>),
}

/// A decided change.
#[derive(Debug)]
pub(crate) enum Decided {
    /// The row of an object.
    Object(RowChange),
    /// Rows of hosts.
    Hosts(HostRows),
}

/// The log of a replica that leads.
pub(crate) trait ChangeLog: Send + Sync + fmt::Debug {
    /// Calls a function that decides a change, appends the change to the log, and applies it. The
    /// function returns `None` to refuse the change. Until the call returns, no other record is
    /// appended.
    ///
    /// # Errors
    /// When the function fails, the replica no longer leads, or the log fails; after an unknown
    /// outcome, the change may be in the log or not.
    fn append(
        &self,
        decide: &mut dyn FnMut() -> Result<Option<Decided>, StoreError>,
    ) -> Result<(), StoreError>;
}

/// The rows of a record: each with its project, its kind and the version of its object, 0 without
/// an object.
type ParsedRows<'a> = Vec<(&'a RowChange, ProjectName, ObjectKind, u64)>;

fn parsed(number: u64, rows: &[RowChange]) -> Result<ParsedRows<'_>, StoreError> {
    let mut parsed = Vec::with_capacity(rows.len());
    for change in rows {
        let found = row::parse(&change.key, change.row.as_deref());
        let (project, kind, object) = found.ok_or_else(|| bad_row(number, &change.key))?;
        parsed.push((change, project, kind, object.map_or(0, |object| object.version)));
    }
    Ok(parsed)
}

fn bad_row(number: u64, key: &str) -> StoreError {
    let problem = format!("record {number} has a row that is none of an object or host: {key:?}");
    StoreError::Corrupt { file: JOURNAL_FILE.to_owned(), problem }
}

/// Checks the rows of a record.
///
/// # Errors
/// When one is no row of an object or host.
pub(crate) fn check_rows(
    number: u64,
    objects: &[RowChange],
    hosts: Option<&HostRows>,
) -> Result<(), StoreError> {
    parsed(number, objects)?;
    let mut rows = hosts.iter().flat_map(|hosts| &hosts.rows);
    let bad = rows.find(|change| !hosts::is_valid(change));
    bad.map_or(Ok(()), |change| Err(bad_row(number, &change.key)))
}

impl Objects {
    /// Changes come from a log that another store leads, from now on.
    pub(crate) fn follow(&self) {
        *self.place.write() = Place::Followed;
    }

    /// Changes become durable in a log, from now on.
    pub(crate) fn lead(&self, log: &Arc<dyn ChangeLog>) {
        *self.place.write() = Place::Led(Arc::downgrade(log));
    }

    /// Returns the log that gets changes; `None` for an embedded store.
    pub(super) fn log(&self) -> Result<Option<Arc<dyn ChangeLog>>, StoreError> {
        let log = match &*self.place.read() {
            Place::File => return Ok(None),
            Place::Followed => None,
            Place::Led(log) => log.upgrade(),
        };
        log.map(Some).ok_or_else(not_leading)
    }

    /// Appends the changes of unknown outcome again, so that objects show all earlier changes.
    ///
    /// # Errors
    /// The log fails: the outcome stays unknown.
    pub(crate) fn settle(&self) -> Result<(), StoreError> {
        self.log()?.map_or(Ok(()), |log| log.append(&mut || Ok(None)))
    }

    /// Decides a change of an object, and appends it.
    pub(super) fn append_object(
        &self,
        log: &dyn ChangeLog,
        change: &Change<'_>,
    ) -> Result<Result<u64, ObjectRefusal>, StoreError> {
        let mut outcome = Err(change.conflict(None));
        log.append(&mut || {
            self.refuse_lost()?;
            // The record changes the use when it is applied.
            let decide =
                |file: &DatabaseFile, used: &mut QuotaUse| change.decide(file, &mut used.clone());
            let (decided, answer) = match self.with_file(change, decide)? {
                Ok(Accepted { last, change }) => (Some(Decided::Object(change)), Ok(last)),
                Err(refusal) => (None, Err(refusal)),
            };
            outcome = answer;
            Ok(decided)
        })?;
        Ok(outcome)
    }

    /// Appends changes of hosts: several records when one has no room for them.
    pub(super) fn append_hosts(
        log: &dyn ChangeLog,
        project: &ProjectName,
        changes: &HostChanges,
    ) -> Result<(), StoreError> {
        for rows in hosts::parts(project, changes, HOSTS_BYTES) {
            let mut rows = Some(rows);
            log.append(&mut || Ok(rows.take().map(Decided::Hosts)))?;
        }
        Ok(())
    }

    /// Stores the rows of a record durably, with its number; a repetition has no effect.
    ///
    /// # Errors
    /// When the file cannot be read or written, or was damaged or lost: the rows are stored or not.
    pub(crate) fn apply(
        &self,
        number: u64,
        objects: &[RowChange],
        hosts: Option<&HostRows>,
    ) -> Result<(), StoreError> {
        self.refuse_lost()?;
        let rows = parsed(number, objects)?;
        let file = self.file.read().clone();
        let file = file.map_or_else(|| self.create(), Ok)?;
        if self.or_set_aside(&file, through(&file))? >= number {
            return Ok(());
        }
        let mut used = self.used.lock();
        // After an error, the use is unknown.
        let mut after = used.take();
        let stored = file.transact(OPERATION, |txn| {
            let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
            store(txn, &mut meta, rows, after.as_mut())?;
            if let Some(hosts) = hosts {
                hosts::write_rows(txn, &mut meta, hosts)?;
            }
            set_number(&mut meta, THROUGH_KEY, number).map_err(fail(OPERATION))
        });
        self.or_set_aside(&file, stored)?;
        *used = after;
        Ok(())
    }

    /// Passes each part of the state, as of record `applied`, to `add`, with the name of the part.
    ///
    /// # Errors
    /// When the file cannot be read, or has changes of later records.
    pub(crate) fn digest(
        &self,
        applied: u64,
        add: &mut dyn FnMut(&str, &[u8]),
    ) -> Result<(), StoreError> {
        self.refuse_lost()?;
        self.read((), |file| {
            let through = through(file)?;
            if through > applied {
                let problem = format!("it contains record {through}, but {applied} is applied");
                return Err(StoreError::Mismatch { file: OBJECTS_FILE.to_owned(), problem });
            }
            read(file, |txn| {
                for (part, table) in [("objects", OBJECTS), ("hosts", HOSTS)] {
                    let rows = txn.open_table(table).map_err(fail("read"))?;
                    for entry in rows.iter().map_err(fail("read"))? {
                        let (key, row) = entry.map_err(fail("read"))?;
                        add(part, &[key.value().as_bytes(), &[0], row.value()].concat());
                    }
                }
                let meta = txn.open_table(META).map_err(fail("read"))?;
                let of_file = [VERSION_KEY, THROUGH_KEY, &check_key(THROUGH_KEY)];
                for entry in meta.iter().map_err(fail("read"))? {
                    let (key, number) = entry.map_err(fail("read"))?;
                    let (key, number) = (key.value(), number.value().to_le_bytes());
                    if !of_file.contains(&key) {
                        let part = if key.starts_with("hosts") { "hosts" } else { "objects" };
                        add(part, &[key.as_bytes(), &[0], &number].concat());
                    }
                }
                Ok(())
            })
        })
    }

    /// Refuses the use of a replica whose objects were lost: its answers would differ from those of
    /// the other replicas.
    fn refuse_lost(&self) -> Result<(), StoreError> {
        if !self.register.is_lost(OBJECTS_FILE) {
            return Ok(());
        }
        let problem = "its objects were lost: copy this replica again from another node".to_owned();
        Err(StoreError::Mismatch { file: OBJECTS_FILE.to_owned(), problem })
    }
}

/// Writes the rows of objects, and notes their use of quotas if it is known.
fn store(
    txn: &WriteTransaction,
    meta: &mut Table<'_, &'static str, u64>,
    rows: ParsedRows<'_>,
    mut used: Option<&mut QuotaUse>,
) -> Result<(), StoreError> {
    let mut objects = txn.open_table(OBJECTS).map_err(fail(OPERATION))?;
    for (change, project, kind, version) in rows {
        let last_key = project.stored_name(LAST_KEY);
        let last = counted(meta.get(&*last_key).map_err(fail(OPERATION))?).max(version);
        let before = write(&mut objects, meta, change, (&last_key, last))?;
        let Some(used) = used.as_deref_mut() else { continue };
        let used_by = (project.as_str(), kind);
        if let Some(length) = before {
            used.remove(used_by, length);
        }
        if let Some(row) = &change.row {
            used.add(used_by, row.len());
        }
    }
    Ok(())
}

/// Returns the error of a change in a replica that follows.
pub(crate) fn not_leading() -> StoreError {
    let problem = "this node does not lead the shard: send the change to the node that does";
    StoreError::Mismatch { file: SHARED_LOG.to_owned(), problem: problem.to_owned() }
}
