//! The built-in dashboards: hosts, MongoDB, and the daemon itself.

use super::Dashboard;

/// The names and the JSON of the dashboards.
const BUILTIN: [(&str, &str); 3] = [
    ("hosts", include_str!("hosts.json")),
    ("mongodb", include_str!("mongodb.json")),
    ("granary", include_str!("granary.json")),
];

/// Returns a built-in dashboard by its name.
pub(in crate::kept) fn get(name: &str) -> Option<Dashboard> {
    let (_, json) = BUILTIN.iter().find(|(known, _)| *known == name)?;
    // A test ensures that each of them is valid.
    Dashboard::read(json).ok()
}

/// Returns the names of the built-in dashboards.
pub(in crate::kept) fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}
