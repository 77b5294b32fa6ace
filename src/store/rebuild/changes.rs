//! The files that opening a data directory sets aside or removes.
//!
//! Must never know: the content of the files.

use std::{collections::BTreeSet, io, sync::Arc};

use crate::store::{
    error::StoreError,
    file::{
        database::UNFINISHED,
        medium::Medium,
        names::{HEAD_FILE, JOURNAL_FILE, OBJECTS_FILE, data_files},
    },
    journal::register::{DAMAGED_FOLDER, MISSING, aside_name},
};

/// Returns the names of all files, including unfinished files and damaged files that were set
/// aside.
pub(super) fn files(medium: &Arc<dyn Medium>) -> Result<BTreeSet<String>, StoreError> {
    let mut names: BTreeSet<String> = data_files(medium)?.into_iter().collect();
    let fault = |folder: &str| {
        let file = folder.to_owned();
        move |cause: io::Error| StoreError::Io { operation: "list", file, cause }
    };
    for name in medium.list(DAMAGED_FOLDER).map_err(fault(DAMAGED_FOLDER))? {
        names.insert(format!("{DAMAGED_FOLDER}/{name}"));
    }
    let folders = names.iter().filter_map(|name| Some(name.rsplit_once('/')?.0.to_owned()));
    for folder in folders.collect::<BTreeSet<_>>() {
        let unfinished = medium.list(&folder).map_err(fault(&folder))?.into_iter();
        let unfinished = unfinished.filter(|name| name.ends_with(UNFINISHED));
        names.extend(unfinished.map(|name| format!("{folder}/{name}")));
    }
    for file in [HEAD_FILE, OBJECTS_FILE, JOURNAL_FILE] {
        let unfinished = format!("{file}{UNFINISHED}");
        if medium.exists(&unfinished).map_err(fault(&unfinished))? {
            names.insert(unfinished);
        }
    }
    Ok(names)
}

/// Describes the files that were set aside or removed since an earlier call of [`files`].
pub(super) fn since(
    medium: &Arc<dyn Medium>,
    before: &BTreeSet<String>,
) -> Result<Vec<String>, StoreError> {
    let now = files(medium)?;
    let mut done = Vec::new();
    let new: Vec<_> =
        now.difference(before).filter(|name| name.starts_with(DAMAGED_FOLDER)).collect();
    for name in &new {
        let is_marker = name.ends_with(MISSING);
        let verb = if is_marker { "missing, marked as" } else { "damaged, set aside as" };
        done.push(format!("{verb} {name}"));
    }
    for name in before.difference(&now) {
        let aside = format!("{DAMAGED_FOLDER}/{}", aside_name(name));
        if !new.iter().any(|name| name.starts_with(&aside)) {
            done.push(format!("removed {name}, which nothing used"));
        }
    }
    Ok(done)
}
