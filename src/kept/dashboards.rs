//! The dashboards of a store, and the built-in dashboards.
//!
//! Must never know: HTTP, the content of panels.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::{
    ObjectFault,
    dashboard::{Dashboard, builtin},
};
use crate::{
    model::UnixMillis,
    store::{ObjectKind, Store},
};

/// The maximum number of dashboards of a store.
const DASHBOARDS_MAX: usize = 1000;
/// The maximum size of a dashboard's JSON.
const BYTES_MAX: usize = 256 << 10;
const NAME_BYTES_MAX: usize = 64;
/// Bounds around all names: no name begins with `{` or a later character.
const FIRST: &str = "";
const LAST: &str = "{";

/// All dashboards: the built-in ones first, then by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DashboardsAnswer {
    dashboards: Vec<DashboardEntry>,
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
    changed: Option<i64>,
}

/// A dashboard, with the version that a change must quote.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DashboardAnswer {
    name: String,
    version: Option<u64>,
    changed: Option<i64>,
    builtin: bool,
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
pub fn list(store: &Store) -> Result<DashboardsAnswer, ObjectFault> {
    let mut stored = Vec::new();
    store.visit_objects_backwards(ObjectKind::Dashboard, FIRST..LAST, &mut |name, object| {
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
            changed: object.map(|found| found.changed_at.0),
        });
        ControlFlow::Continue(())
    })?;
    let builtin = builtin::names().filter_map(|name| {
        let Dashboard { title, folder, .. } = builtin::get(name)?;
        Some(DashboardEntry {
            name: name.to_owned(),
            title,
            folder,
            version: None,
            builtin: true,
            changed: None,
        })
    });
    Ok(DashboardsAnswer { dashboards: builtin.chain(stored.into_iter().rev()).collect() })
}

/// Returns a dashboard.
///
/// # Errors
/// There is no dashboard with that name, or the store cannot be read.
pub fn get(store: &Store, name: &str) -> Result<DashboardAnswer, ObjectFault> {
    let name_text = name.to_owned();
    if let Some(dashboard) = builtin::get(name) {
        let (version, changed) = (None, None);
        return Ok(DashboardAnswer { name: name_text, version, changed, builtin: true, dashboard });
    }
    let missing = || ObjectFault::NotFound(format!("there is no dashboard {name:?}"));
    check_name(name).map_err(|_| missing())?;
    let object = store.object(ObjectKind::Dashboard, name)?.ok_or_else(missing)?;
    let text = String::from_utf8_lossy(&object.bytes);
    Ok(DashboardAnswer {
        name: name_text,
        version: Some(object.version),
        changed: Some(object.changed_at.0),
        builtin: false,
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
    name: &str,
    expected: Option<u64>,
    dashboard: &Dashboard,
    now: UnixMillis,
) -> Result<u64, ObjectFault> {
    check_changeable(name)?;
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
pub fn delete(store: &Store, name: &str, expected: Option<u64>) -> Result<(), ObjectFault> {
    check_changeable(name)?;
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

/// Checks a name, which is part of addresses.
fn check_name(name: &str) -> Result<(), ObjectFault> {
    let is_plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    if !(1..=NAME_BYTES_MAX).contains(&name.len()) || !name.bytes().all(is_plain) {
        let message = format!(
            "{name:?} is not a dashboard name: use 1 to {NAME_BYTES_MAX} of a-z, 0-9 and -"
        );
        return Err(ObjectFault::Invalid(message));
    }
    Ok(())
}
