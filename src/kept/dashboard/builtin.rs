//! The dashboards that every daemon has: of hosts, of MongoDB, and of the daemon itself.

use super::Dashboard;

/// Each with its name, as JSON.
const BUILTIN: [(&str, &str); 3] = [
    ("hosts", include_str!("hosts.json")),
    ("mongodb", include_str!("mongodb.json")),
    ("granary", include_str!("granary.json")),
];

/// A dashboard that is built in; `None` when none of them has the name.
pub(in crate::kept) fn get(name: &str) -> Option<Dashboard> {
    let (_, json) = BUILTIN.iter().find(|(own, _)| *own == name)?;
    // A test holds each of them to what is read.
    Dashboard::read(json).ok()
}

/// Their names.
pub(in crate::kept) fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}
