//! Rows of objects; FORMAT.md describes the bytes.
//!
//! Must never know: where rows are stored.

use std::ops::Range;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::{OBJECT_BYTES_MAX, OBJECT_NAME_BYTES_MAX, Object, ObjectKind};
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

/// Returns the project, the kind and the object of a row; `None` when the key or the row is none
/// that [`key`] and [`encode`] return.
pub(super) fn parse(
    key_text: &str,
    row: Option<&[u8]>,
) -> Option<(ProjectName, ObjectKind, Option<Object>)> {
    let (project, kind, name) = parse_key(key_text)?;
    let project = ProjectName::new(project).ok()?;
    if !is_name(name) || key(&project, kind, name) != key_text {
        return None;
    }
    let Some(row) = row else { return Some((project, kind, None)) };
    let object = decode(row, key_text).filter(|object| object.bytes.len() <= OBJECT_BYTES_MAX)?;
    Some((project, kind, Some(object)))
}

/// Returns true for a valid name of an object.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= OBJECT_NAME_BYTES_MAX && !name.contains(char::is_control)
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
