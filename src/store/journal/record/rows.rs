//! Changes of the file of objects as rows: the last value of each changed row.
//!
//! FORMAT.md describes the bytes. Must never know: the content of a row.

use super::fields::{put_bytes, take_section, take_text};
use crate::{model::ListeningSpan, store::encoding::fixed::take_bytes};

/// The new value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowChange {
    pub(crate) key: String,
    /// The bytes with their checksum; `None`: the row is removed.
    pub(crate) row: Option<Vec<u8>>,
}

/// Changes of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostRows {
    pub(crate) listening: ListeningSpan,
    pub(crate) rows: Vec<RowChange>,
}

/// Appends rows to a section.
pub(super) fn put_rows(rows: &[RowChange], out: &mut Vec<u8>) {
    for RowChange { key, row } in rows {
        put_bytes(key.as_bytes(), out);
        // A row with a checksum is never empty.
        put_bytes(row.as_deref().unwrap_or_default(), out);
    }
}

/// Reads rows to the end of a section; `None` when it is damaged.
pub(super) fn take_rows(rest: &mut &[u8]) -> Option<Vec<RowChange>> {
    let mut rows = Vec::new();
    while !rest.is_empty() {
        let (key, row) = (take_text(rest)?.to_owned(), take_section(rest)?);
        rows.push(RowChange { key, row: (!row.is_empty()).then(|| row.to_vec()) });
    }
    Some(rows)
}

impl HostRows {
    /// Appends the content of the section.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let ListeningSpan { since, until, listened_ms } = self.listening;
        out.extend([since, until, listened_ms].into_iter().flat_map(i64::to_le_bytes));
        put_rows(&self.rows, out);
    }

    /// Reads the section to its end; `None` when it is damaged.
    pub(super) fn decode(rest: &mut &[u8]) -> Option<Self> {
        let mut time = || take_bytes(rest).map(i64::from_le_bytes);
        let listening = ListeningSpan { since: time()?, until: time()?, listened_ms: time()? };
        Some(Self { listening, rows: take_rows(rest)? })
    }
}
