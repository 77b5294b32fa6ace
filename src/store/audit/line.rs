//! A line of the audit: JSON whose first field is the checksum of the bytes after it.
//!
//! Must never know: files.

use std::fmt::Write as _;

use xxhash_rust::xxh3::xxh3_64;

use crate::model::AuditRecord;

/// The bytes before the checksum's digits.
const OPENING: &[u8] = b"{\"sum\":\"";
const DIGITS: usize = 16;
/// The bytes after the checksum's digits.
const BETWEEN: &[u8] = b"\",";

/// Appends the line of a record.
pub(super) fn append(record: &AuditRecord, lines: &mut Vec<u8>) {
    // A record contains only texts and numbers, so serialization cannot fail.
    let json = serde_json::to_vec(record).unwrap_or_default();
    let fields = json.get(1..).unwrap_or_default();
    let mut digits = String::with_capacity(DIGITS);
    write!(digits, "{:016x}", xxh3_64(fields)).unwrap_or_default();
    for part in [OPENING, digits.as_bytes(), BETWEEN, fields, b"\n"] {
        lines.extend_from_slice(part);
    }
}

/// Reads a line without its end; `None` when it is damaged.
pub(super) fn read(line: &[u8]) -> Option<AuditRecord> {
    let (digits, rest) = line.strip_prefix(OPENING)?.split_at_checked(DIGITS)?;
    let fields = rest.strip_prefix(BETWEEN)?;
    let digits = std::str::from_utf8(digits).ok()?;
    if u64::from_str_radix(digits, 16).ok()? != xxh3_64(fields) {
        return None;
    }
    let mut json = vec![b'{'];
    json.extend_from_slice(fields);
    serde_json::from_slice(&json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AuditKind, AuditOutcome};

    #[test]
    fn a_line_is_read_again_and_no_changed_or_cut_one_is() {
        let record = AuditRecord {
            seq: 7,
            at: 1_764_000_000_000,
            kind: AuditKind::Key,
            who: "root \"x\"".to_owned(),
            address: "::1".to_owned(),
            action: "DELETE /api/v1/series".to_owned(),
            object: "cpu{host=\"a\"}".to_owned(),
            outcome: AuditOutcome::Done,
            status: 200,
            reason: String::new(),
            count: 1,
        };
        let mut lines = Vec::new();
        append(&record, &mut lines);
        let line = lines.strip_suffix(b"\n").unwrap();
        assert_eq!(read(line), Some(record));
        let shown = String::from_utf8(line.to_vec()).unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok(), "{shown}");
        for at in 0..line.len() {
            assert_eq!(read(&line[..at]), None, "cut at {at}");
            let mut changed = line.to_vec();
            changed[at] ^= 1;
            assert_eq!(read(&changed), None, "changed at {at}");
        }
    }
}
