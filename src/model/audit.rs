//! Records of who changed what, and of refused callers.

use serde::{Deserialize, Serialize};

use super::UnixMillis;

/// The maximum size of each text of a record in bytes.
pub const AUDIT_TEXT_BYTES_MAX: usize = 256;

/// The credential that identified a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// A key.
    Key,
    /// A password or a session of a user.
    User,
    /// A client certificate.
    Client,
    /// A one-time code.
    Code,
    /// A user of the daemon's machine: a signal, or a command on a stopped data directory.
    Machine,
    /// No credential: access control is off, or no key was recognized.
    None,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditOutcome {
    /// The change was made.
    Done,
    /// The request was invalid, or the change failed.
    Failed,
    /// The caller may not do this.
    Refused,
}

/// A record of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// The number of the record, which is higher than those of all earlier records.
    pub seq: u64,
    /// The time, in Unix milliseconds.
    pub at: i64,
    /// The credential that identified the caller.
    pub kind: AuditKind,
    /// The caller's name; empty when nobody was identified.
    pub who: String,
    /// The caller's address; empty when it is unknown.
    pub address: String,
    /// The method and the route, `login`, `SIGHUP`, or a command.
    pub action: String,
    /// The object of the change; empty when the route is enough.
    pub object: String,
    /// The outcome.
    pub outcome: AuditOutcome,
    /// The status of the response; 0 without one.
    pub status: u16,
    /// The reason of a refusal; empty for other outcomes.
    pub reason: String,
    /// The number of identical refusals in this record.
    pub count: u64,
}

impl AuditRecord {
    /// Returns the record of a change by a user of the daemon's machine.
    pub fn of_machine(
        who: &str,
        action: &str,
        object: &str,
        is_done: bool,
        at: UnixMillis,
    ) -> Self {
        Self {
            seq: 0,
            at: at.0,
            kind: AuditKind::Machine,
            who: who.to_owned(),
            address: String::new(),
            action: action.to_owned(),
            object: audit_text(object),
            outcome: if is_done { AuditOutcome::Done } else { AuditOutcome::Failed },
            status: 0,
            reason: String::new(),
            count: 1,
        }
    }
}

/// Returns the beginning of a text that a record may contain, in one line.
pub fn audit_text(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut short = String::new();
    for c in text.chars().map(shown) {
        if short.len() + c.len_utf8() > AUDIT_TEXT_BYTES_MAX {
            break;
        }
        short.push(c);
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_short_and_has_one_line() {
        assert_eq!(audit_text("a\nb\u{1b}[1m"), "a\u{fffd}b\u{fffd}[1m");
        let long = audit_text(&"é".repeat(1000));
        assert_eq!(long.len(), AUDIT_TEXT_BYTES_MAX);
        assert_eq!(audit_text(&format!("a{}", "é".repeat(1000))).len(), 255);
    }
}
