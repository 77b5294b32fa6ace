//! A change of one object: it is decided by the stored version and the quotas, then written in one
//! transaction.
//!
//! Must never know: who changes an object, the content of objects.

use redb::ReadableTable;

use super::{
    Object, ObjectKind, ObjectRefusal,
    file::{LAST_KEY, META, OBJECTS, OPERATION, counted, fail, get, read, write},
    quotas::QuotaUse,
    row,
};
use crate::{
    model::{ProjectName, UnixMillis},
    store::{error::StoreError, file::database::DatabaseFile, journal::record::rows::RowChange},
};

/// A change of one object.
pub(super) struct Change<'a> {
    pub(super) project: &'a ProjectName,
    pub(super) kind: ObjectKind,
    pub(super) name: &'a str,
    /// The expected version; `None`: the object must be absent or damaged.
    pub(super) expected: Option<u64>,
    /// The new bytes, and the time of the change; `None`: the object is deleted.
    pub(super) new: Option<(&'a [u8], UnixMillis)>,
}

/// An accepted change of one object.
pub(super) struct Accepted {
    /// The object's new version; for a deletion, the last version that was assigned.
    pub(super) last: u64,
    pub(super) change: RowChange,
}

impl Change<'_> {
    pub(super) fn conflict(&self, found: Option<u64>) -> ObjectRefusal {
        ObjectRefusal::Conflict { kind: self.kind, name: self.name.to_owned(), found }
    }

    /// Makes the change in one transaction; returns the object's new version, or for a deletion the
    /// last version that was assigned.
    pub(super) fn make(
        &self,
        file: &DatabaseFile,
        used: &mut QuotaUse,
    ) -> Result<Result<u64, ObjectRefusal>, StoreError> {
        // Most conflicts are found without a write transaction.
        match get(file, self.project, self.kind, self.name) {
            Ok(found) => {
                let found = found.map(|object| object.version);
                if found != self.expected {
                    return Ok(Err(self.conflict(found)));
                }
            }
            Err(StoreError::DamagedObject { .. }) => {}
            Err(fault) => return Err(fault),
        }
        file.transact(OPERATION, |txn| {
            let mut objects = txn.open_table(OBJECTS).map_err(fail(OPERATION))?;
            let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
            let Accepted { last, change } = match self.judge(&objects, &meta, used)? {
                Ok(accepted) => accepted,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let last_key = self.project.stored_name(LAST_KEY);
            write(&mut objects, &mut meta, &change, (&last_key, last))?;
            Ok(Ok(last))
        })
    }

    /// Decides the change by the present objects, without making it.
    pub(super) fn decide(
        &self,
        file: &DatabaseFile,
        used: &mut QuotaUse,
    ) -> Result<Result<Accepted, ObjectRefusal>, StoreError> {
        read(file, |txn| {
            let objects = txn.open_table(OBJECTS).map_err(fail("read"))?;
            let meta = txn.open_table(META).map_err(fail("read"))?;
            self.judge(&objects, &meta, used)
        })
    }

    fn judge(
        &self,
        objects: &impl ReadableTable<&'static str, &'static [u8]>,
        meta: &impl ReadableTable<&'static str, u64>,
        used: &mut QuotaUse,
    ) -> Result<Result<Accepted, ObjectRefusal>, StoreError> {
        let key = row::key(self.project, self.kind, self.name);
        let used_by = (self.project.as_str(), self.kind);
        let last_key = self.project.stored_name(LAST_KEY);
        let last = counted(meta.get(&*last_key).map_err(fail(OPERATION))?);
        let before = objects.get(&*key).map_err(fail(OPERATION))?;
        let before = before.map(|row| (row.value().len(), row::decode(row.value(), &key)));
        let found = before.as_ref().and_then(|(_, object)| object.as_ref());
        let found = found.map(|object| object.version);
        let deletes_nothing = before.is_none() && self.new.is_none();
        if found != self.expected || deletes_nothing {
            return Ok(Err(self.conflict(found)));
        }
        let length = before.map(|(length, _)| length);
        let Some((new, changed_at)) = self.new else {
            used.remove(used_by, length.unwrap_or(0));
            return Ok(Ok(Accepted { last, change: RowChange { key, row: None } }));
        };
        let object = Object { version: last + 1, changed_at, bytes: new.to_vec() };
        let row = row::encode(&object, &key);
        if let Err(refusal) = used.put(used_by, length, row.len()) {
            return Ok(Err(refusal));
        }
        let change = RowChange { key, row: Some(row) };
        Ok(Ok(Accepted { last: last + 1, change }))
    }
}
