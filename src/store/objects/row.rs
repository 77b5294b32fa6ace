//! Rows of objects; FORMAT.md describes the bytes.
//!
//! Must never know: where rows are stored.

use std::ops::Range;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::{Object, ObjectKind};
use crate::model::{ProjectName, UnixMillis, split_stored_name};

/// Returns the key of an object: its kind, a slash, its name with its project.
pub(super) fn key(project: &ProjectName, kind: ObjectKind, name: &str) -> String {
    format!("{kind}/{}", project.stored_name(name))
}

/// Returns the range of the keys of a project's objects of a kind.
pub(super) fn keys(project: &ProjectName, kind: ObjectKind) -> Range<String> {
    let (from, to) = project.stored_range();
    format!("{kind}/{from}")..format!("{kind}/{to}")
}

/// Returns the range of the keys of all objects of a kind in projects other than `default`.
pub(super) fn keys_of_other_projects(kind: ObjectKind) -> (String, String) {
    (format!("{kind}/"), keys(&ProjectName::default(), kind).start)
}

/// Returns the project, kind and name in a key; `None` when the key is not that of an object.
pub(super) fn parse_key(key: &str) -> Option<(&str, ObjectKind, &str)> {
    let (kind, name) = key.split_once('/')?;
    let (project, name) = split_stored_name(name);
    Some((project, *ObjectKind::ALL.iter().find(|known| known.as_str() == kind)?, name))
}

/// Returns the row of an object under a key.
pub(super) fn encode(object: &Object, key: &str) -> Vec<u8> {
    let mut row = Vec::with_capacity(object.bytes.len() + 24);
    row.extend_from_slice(&object.version.to_le_bytes());
    row.extend_from_slice(&object.changed_at.0.to_le_bytes());
    row.extend_from_slice(&object.bytes);
    row.extend_from_slice(&checksum(&row, key));
    row
}

/// Reads the row under a key; `None` when its checksum does not match.
pub(super) fn decode(row: &[u8], key: &str) -> Option<Object> {
    let (content, sum) = row.split_last_chunk::<8>()?;
    let (version, rest) = content.split_first_chunk::<8>()?;
    let (changed_at, bytes) = rest.split_first_chunk::<8>()?;
    (*sum == checksum(content, key)).then(|| Object {
        version: u64::from_le_bytes(*version),
        changed_at: UnixMillis(i64::from_le_bytes(*changed_at)),
        bytes: bytes.to_vec(),
    })
}

pub(super) fn checksum(content: &[u8], key: &str) -> [u8; 8] {
    xxh3_64_with_seed(content, xxh3_64(key.as_bytes())).to_le_bytes()
}
