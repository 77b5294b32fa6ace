//! The projects in the file of objects, for a downgrade: the earlier format has none.
//!
//! Must never know: who belongs to a project.

use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use super::{
    ObjectKind,
    file::{HOSTS, OBJECTS, fail, remove_range},
    row,
};
use crate::{
    model::{DEFAULT_PROJECT, split_stored_name},
    store::error::StoreError,
};

/// The kinds of objects that people make.
const MADE_BY_PEOPLE: [ObjectKind; 4] =
    [ObjectKind::Dashboard, ObjectKind::Annotation, ObjectKind::Silence, ObjectKind::RuleText];

/// Returns a project other than `default` that has objects of people.
pub(crate) fn project_with_objects(txn: &ReadTransaction) -> Result<Option<String>, StoreError> {
    let objects = txn.open_table(OBJECTS).map_err(fail("read"))?;
    for entry in objects.iter().map_err(fail("read"))? {
        let (key, _) = entry.map_err(fail("read"))?;
        let found = row::parse_key(key.value());
        let found = found.filter(|(_, kind, _)| MADE_BY_PEOPLE.contains(kind));
        if let Some((project, ..)) = found.filter(|(project, ..)| *project != DEFAULT_PROJECT) {
            return Ok(Some(project.to_owned()));
        }
    }
    Ok(None)
}

/// Removes the hosts and the other objects of projects other than `default`.
pub(crate) fn remove_other_projects(txn: &WriteTransaction) -> Result<(), StoreError> {
    const OPERATION: &str = "remove projects";
    for kind in ObjectKind::ALL {
        let (from, to) = row::keys_of_other_projects(*kind);
        remove_range(txn, &from, &to)?;
    }
    let mut hosts = txn.open_table(HOSTS).map_err(fail(OPERATION))?;
    let is_default = |name: &str, _: &[u8]| split_stored_name(name).0 == DEFAULT_PROJECT;
    hosts.retain(is_default).map_err(fail(OPERATION))
}
