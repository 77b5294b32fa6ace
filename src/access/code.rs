//! One-time codes: a code grants one right to the first client that sends it, such as a key to an
//! agent.
//!
//! A used code is removed, so it gets the same answer as an expired or unknown code. Must never
//! know: what happens with the right, where codes are stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use subtle::ConstantTimeEq;

use super::{
    record::{SENDERS_BYTES_MAX, check_line},
    scopes::Scopes,
    token::{self, Digest, Token, TokenKind},
};
use crate::model::{ProjectName, UnixMillis};

/// The minimum validity of a code: a minute.
const CODE_VALID_MS_MIN: i64 = 60_000;
/// The maximum validity of a code: 90 days.
pub const CODE_VALID_MS_MAX: i64 = 90 * 86_400_000;
/// The minimum lifetime of a key that a code gives: an hour.
const KEY_LIFE_MS_MIN: i64 = 3_600_000;
/// The maximum lifetime of a key that a code gives: about five years.
const KEY_LIFE_MS_MAX: i64 = 5 * 366 * 86_400_000;

/// The use of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Purpose {
    /// An agent receives a key that is limited to its name.
    Enroll,
    /// The first administrator chooses a name and a password.
    FirstAdmin,
}

impl Purpose {
    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The stored part of a code. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeRecord {
    /// The use.
    pub purpose: Purpose,
    /// The scopes that the code gives.
    pub scopes: Scopes,
    /// The project that the code gives access to.
    #[serde(default)]
    pub project: ProjectName,
    /// The prefix of the names of senders that may use the code; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub senders: Option<String>,
    /// The time of creation.
    pub created: i64,
    /// The name of the creator; empty without access control.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created_by: String,
    /// The time from which the code is invalid.
    pub expires: i64,
    /// The lifetime of the key that the code gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_life_ms: Option<i64>,
    /// The digest of the secret.
    sha256: Digest,
}

impl CodeRecord {
    /// Returns true if the code has not expired.
    pub fn is_current(&self, now: UnixMillis) -> bool {
        now.0 < self.expires
    }
}

/// The properties of a new code.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "CodeRecord describes the fields")]
pub struct NewCode {
    pub purpose: Purpose,
    pub scopes: Scopes,
    pub project: ProjectName,
    pub senders: Option<String>,
    /// The time for which the code is valid.
    pub valid_ms: i64,
    pub key_life_ms: Option<i64>,
}

impl NewCode {
    /// Checks the properties; the error names the property and the remedy.
    ///
    /// # Errors
    /// A property is invalid.
    pub fn check(&self) -> Result<(), String> {
        if !(CODE_VALID_MS_MIN..=CODE_VALID_MS_MAX).contains(&self.valid_ms) {
            return Err("valid_ms: use 1 minute to 90 days".to_owned());
        }
        if self.key_life_ms.is_some_and(|life| !(KEY_LIFE_MS_MIN..=KEY_LIFE_MS_MAX).contains(&life))
        {
            return Err("key_life_ms: use 1 hour to 5 years".to_owned());
        }
        self.senders
            .as_ref()
            .map_or(Ok(()), |senders| check_line("senders", senders, SENDERS_BYTES_MAX))
    }

    /// Returns the record of the code with the secret of a token.
    pub fn record(self, token: &Token, created_by: &str, now: UnixMillis) -> CodeRecord {
        let Self { purpose, scopes, project, senders, valid_ms, key_life_ms } = self;
        CodeRecord {
            purpose,
            scopes,
            project,
            senders,
            created: now.0,
            created_by: created_by.to_owned(),
            expires: now.0.saturating_add(valid_ms),
            key_life_ms,
            sha256: token.digest(),
        }
    }
}

/// All codes of a daemon, by id.
#[derive(Debug, Clone, Default)]
pub struct CodeSet(BTreeMap<String, CodeRecord>);

impl CodeSet {
    /// Adds a code.
    pub fn put(&mut self, id: String, record: CodeRecord) {
        self.0.insert(id, record);
    }

    /// Removes a code.
    pub fn remove(&mut self, id: &str) -> Option<CodeRecord> {
        self.0.remove(id)
    }

    /// Returns the codes with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &CodeRecord)> {
        self.0.iter()
    }

    /// Returns the ids of expired codes.
    pub fn expired(&self, now: UnixMillis) -> Vec<String> {
        let is_expired = |(_, record): &(&String, &CodeRecord)| !record.is_current(now);
        self.0.iter().filter(is_expired).map(|(id, _)| id.clone()).collect()
    }

    /// Returns the code with this text and its id, if it is valid for the purpose.
    pub fn find(
        &self,
        text: &[u8],
        purpose: Purpose,
        now: UnixMillis,
    ) -> Option<(String, &CodeRecord)> {
        let (id, secret) = token::parse(TokenKind::Code, text)?;
        let id = token::id_text(&id);
        let record = self.0.get(&id)?;
        let fits = record.sha256.as_bytes().ct_eq(token::digest(secret).as_bytes());
        let is_valid = bool::from(fits) && record.purpose == purpose && record.is_current(now);
        is_valid.then_some((id, record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Scope;

    const NOW: UnixMillis = UnixMillis(1_764_000_000_000);

    fn new_code() -> NewCode {
        NewCode {
            purpose: Purpose::Enroll,
            scopes: Scopes::of(&[Scope::Ingest]),
            project: ProjectName::default(),
            senders: None,
            valid_ms: CODE_VALID_MS_MIN,
            key_life_ms: Some(KEY_LIFE_MS_MIN),
        }
    }

    #[test]
    fn a_code_is_valid_as_a_whole_in_its_time_and_for_its_purpose() {
        let (mut codes, token) = (CodeSet::default(), Token::random_code().unwrap());
        codes.put(token.id(), new_code().record(&token, "root", NOW));
        let text = token.reveal();
        let find =
            |text: &str, purpose, now| codes.find(text.as_bytes(), purpose, now).map(|(id, _)| id);
        assert_eq!(find(&text, Purpose::Enroll, NOW), Some(token.id()));
        assert_eq!(find(&text, Purpose::FirstAdmin, NOW), None);
        let end = NOW.plus(CODE_VALID_MS_MIN);
        assert_eq!(find(&text, Purpose::Enroll, end.plus(-1)), Some(token.id()));
        assert_eq!(find(&text, Purpose::Enroll, end), None);
        assert_eq!((codes.expired(end.plus(-1)), codes.expired(end)), (vec![], vec![token.id()]));
        for length in 0..text.len() {
            assert_eq!(find(text.split_at(length).0, Purpose::Enroll, NOW), None);
        }
        let other = Token::random_code().unwrap().reveal();
        let secret = other.rsplit('_').next().unwrap();
        let mixed = format!("grc_{}_{secret}", token.id());
        assert_eq!(find(&mixed, Purpose::Enroll, NOW), None);
        let stored = serde_json::to_string(codes.iter().next().unwrap().1).unwrap();
        assert!(!stored.contains(text.rsplit('_').next().unwrap()), "{stored}");
    }

    #[test]
    fn the_limits_of_a_code_are_checked() {
        for (change, location) in [
            (NewCode { valid_ms: 59_999, ..new_code() }, "valid_ms"),
            (NewCode { valid_ms: CODE_VALID_MS_MAX + 1, ..new_code() }, "valid_ms"),
            (NewCode { key_life_ms: Some(1), ..new_code() }, "key_life_ms"),
            (NewCode { key_life_ms: Some(i64::MAX), ..new_code() }, "key_life_ms"),
            (NewCode { senders: Some(String::new()), ..new_code() }, "senders"),
        ] {
            assert!(change.check().unwrap_err().starts_with(location), "{change:?}");
        }
        assert_eq!(new_code().check(), Ok(()));
    }
}
