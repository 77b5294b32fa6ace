//! The dashboards of a store, the dashboards in files, and the built-in dashboards.
//!
//! Must never know: HTTP, the content of panels.

mod files;

pub use files::DashboardFiles;

use std::ops::ControlFlow;

use files::DashboardFileFault;

use serde::{Deserialize, Serialize};

use super::{
    ObjectFault,
    dashboard::{Dashboard, builtin, check_dashboard_name},
};
use crate::{
    model::UnixMillis,
    store::{ObjectKind, Store},
};

/// The maximum number of dashboards of a store.
const DASHBOARDS_MAX: usize = 1000;
/// The maximum size of a dashboard's JSON.
const BYTES_MAX: usize = 256 << 10;
/// Bounds around all names: no name begins with `{` or a later character.
const FIRST: &str = "";
const LAST: &str = "{";

/// All dashboards: the built-in ones first, then those of files, then the others; by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DashboardsAnswer {
    dashboards: Vec<DashboardEntry>,
    /// The files whose dashboards are not in use, and the files that hide a saved dashboard.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<DashboardFileFault>,
}

/// A dashboard in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct DashboardEntry {
    name: String,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    version: Option<u64>,
    builtin: bool,
    /// The name of its file, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    changed: Option<i64>,
}

/// A dashboard, with the version that a change must quote.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DashboardAnswer {
    name: String,
    version: Option<u64>,
    changed: Option<i64>,
    builtin: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    dashboard: Dashboard,
}

/// The part of a dashboard that the list needs.
#[derive(Deserialize)]
struct DashboardTitle {
    title: String,
    #[serde(default)]
    folder: Option<String>,
}

/// Lists all dashboards.
///
/// # Errors
/// The store cannot be read.
pub fn list(store: &Store, files: &DashboardFiles) -> Result<DashboardsAnswer, ObjectFault> {
    let of_files = files.get();
    let mut faults = of_files.faults.clone();
    let mut stored = Vec::new();
    store.visit_objects_backwards(ObjectKind::Dashboard, FIRST..LAST, &mut |name, object| {
        if of_files.dashboards.contains_key(name) {
            let message = "it hides a saved dashboard of this name: rename the file to see both";
            let (file, message) = (file_name(name), message.to_owned());
            faults.push(DashboardFileFault { file, message });
            return ControlFlow::Continue(());
        }
        let titled = object
            .as_ref()
            .and_then(|found| serde_json::from_slice::<DashboardTitle>(&found.bytes).ok());
        // A damaged dashboard can be deleted, or replaced under its name.
        let DashboardTitle { title, folder } = titled
            .unwrap_or_else(|| DashboardTitle { title: format!("{name} (damaged)"), folder: None });
        stored.push(DashboardEntry {
            name: name.to_owned(),
            title,
            folder,
            version: object.as_ref().map(|found| found.version),
            builtin: false,
            file: None,
            changed: object.map(|found| found.changed_at.0),
        });
        ControlFlow::Continue(())
    })?;
    let builtin = builtin::names().filter_map(|name| Some((name, builtin::get(name)?)));
    let builtin = builtin.map(|(name, dashboard)| DashboardEntry::fixed(name, &dashboard, None));
    let in_files = of_files
        .dashboards
        .iter()
        .map(|(name, dashboard)| DashboardEntry::fixed(name, dashboard, Some(file_name(name))));
    let dashboards = builtin.chain(in_files).chain(stored.into_iter().rev()).collect();
    Ok(DashboardsAnswer { dashboards, faults })
}

impl DashboardEntry {
    /// Returns the entry of a dashboard that cannot be changed.
    fn fixed(name: &str, dashboard: &Dashboard, file: Option<String>) -> Self {
        Self {
            name: name.to_owned(),
            title: dashboard.title.clone(),
            folder: dashboard.folder.clone(),
            version: None,
            builtin: file.is_none(),
            file,
            changed: None,
        }
    }
}

fn file_name(name: &str) -> String {
    format!("{name}.json")
}

/// Returns a dashboard.
///
/// # Errors
/// There is no dashboard with that name, or the store cannot be read.
pub fn get(
    store: &Store,
    files: &DashboardFiles,
    name: &str,
) -> Result<DashboardAnswer, ObjectFault> {
    let in_file = || Some((files.get().dashboards.get(name)?.clone(), Some(file_name(name))));
    if let Some((dashboard, file)) =
        builtin::get(name).map(|dashboard| (dashboard, None)).or_else(in_file)
    {
        return Ok(DashboardAnswer {
            name: name.to_owned(),
            version: None,
            changed: None,
            builtin: file.is_none(),
            file,
            dashboard,
        });
    }
    let missing = || ObjectFault::NotFound(format!("there is no dashboard {name:?}"));
    check_name(name).map_err(|_| missing())?;
    let object = store.object(ObjectKind::Dashboard, name)?.ok_or_else(missing)?;
    let text = String::from_utf8_lossy(&object.bytes);
    Ok(DashboardAnswer {
        name: name.to_owned(),
        version: Some(object.version),
        changed: Some(object.changed_at.0),
        builtin: false,
        file: None,
        dashboard: Dashboard::read(&text)?,
    })
}

/// Creates a dashboard (`expected` is `None`), or changes the dashboard of version `expected`;
/// returns its new version, durably.
///
/// # Errors
/// The name or the dashboard is invalid, it has changed since that version, the store has no room
/// for it, or the store cannot be written.
pub fn put(
    store: &Store,
    files: &DashboardFiles,
    name: &str,
    expected: Option<u64>,
    dashboard: &Dashboard,
    now: UnixMillis,
) -> Result<u64, ObjectFault> {
    check_changeable(name)?;
    check_no_file(files, name)?;
    let bytes = serde_json::to_vec(dashboard)
        .map_err(|cause| ObjectFault::Invalid(format!("it cannot be written as JSON: {cause}")))?;
    if bytes.len() > BYTES_MAX {
        let message = format!("the dashboard has {} bytes, more than {BYTES_MAX}", bytes.len());
        return Err(ObjectFault::Invalid(message));
    }
    if expected.is_none() && store.objects(ObjectKind::Dashboard)?.len() >= DASHBOARDS_MAX {
        let message = format!("there are {DASHBOARDS_MAX} dashboards: delete some");
        return Err(ObjectFault::Invalid(message));
    }
    Ok(store.put_object(ObjectKind::Dashboard, name, expected, &bytes, now)??)
}

/// Deletes the dashboard with the version `expected`, durably; a damaged one has no version.
///
/// # Errors
/// There is no such dashboard, it has changed since that version, or the store cannot be written.
pub fn delete(
    store: &Store,
    files: &DashboardFiles,
    name: &str,
    expected: Option<u64>,
) -> Result<(), ObjectFault> {
    check_changeable(name)?;
    check_no_file(files, name)?;
    let found = store.objects(ObjectKind::Dashboard)?.iter().any(|known| known.name == name);
    if !found {
        return Err(ObjectFault::NotFound(format!("there is no dashboard {name:?}")));
    }
    Ok(store.delete_object(ObjectKind::Dashboard, name, expected)??)
}

fn check_changeable(name: &str) -> Result<(), ObjectFault> {
    check_name(name)?;
    if builtin::names().any(|known| known == name) {
        let message =
            format!("{name} is built in and cannot be changed: save yours under another name");
        return Err(ObjectFault::Invalid(message));
    }
    Ok(())
}

/// Refuses the name of a dashboard in a file.
fn check_no_file(files: &DashboardFiles, name: &str) -> Result<(), ObjectFault> {
    if files.get().dashboards.contains_key(name) {
        let file = file_name(name);
        let message =
            format!("{name} comes from the file {file}: edit the file, or save under another name");
        return Err(ObjectFault::Invalid(message));
    }
    Ok(())
}

/// Checks a name, which is part of addresses.
fn check_name(name: &str) -> Result<(), ObjectFault> {
    check_dashboard_name(name).map_err(ObjectFault::Invalid)
}
