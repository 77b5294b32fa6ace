//! The stored part of keys, and the requested properties of new ones.
//!
//! Must never know: how a client's text is checked.

use serde::{Deserialize, Serialize};

use super::{
    project::KeyProject,
    scopes::{Scope, Scopes},
    token::Digest,
};
use crate::model::UnixMillis;

/// The maximum size of a key's name in bytes.
pub const NAME_BYTES_MAX: usize = 100;
/// The maximum size of a key's prefix of senders in bytes.
pub const SENDERS_BYTES_MAX: usize = 128;
/// The maximum time for which the previous secret stays valid: 90 days.
pub const OVERLAP_MS_MAX: i64 = 90 * 86_400_000;

/// The time for which the replaced secret stays valid after a renewal: 7 days.
pub const RENEWAL_OVERLAP_MS: i64 = 7 * 86_400_000;

/// The stored part of a key. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The name, which is unique.
    pub name: String,
    /// The scopes.
    pub scopes: Scopes,
    /// The projects that the key may use.
    #[serde(default)]
    pub project: KeyProject,
    /// The prefix of the senders' names that the key may use; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub senders: Option<String>,
    /// True when `senders` is the whole name of the only sender.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_sender: bool,
    /// The lifetime of each secret; `None` when the holder of the key may not renew it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life_ms: Option<i64>,
    /// The time of creation.
    pub created: i64,
    /// The name of the caller that created this key; empty without access control.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created_by: String,
    /// The time from which the key is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
    /// The digests of the present secret and of the previous one.
    pub(super) secrets: Vec<Secret>,
}

/// The digest of a secret, with the time from which it is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Secret {
    pub(super) sha256: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<i64>,
}

impl Secret {
    /// The secret that is never valid.
    pub(super) const NONE: Self = Self { sha256: Digest::ZERO, until: Some(i64::MIN) };

    pub(super) fn is_valid(&self, now: UnixMillis) -> bool {
        self.until.is_none_or(|until| now.0 < until)
    }
}

/// The requested properties of a new key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "KeyRecord describes the fields")]
pub struct NewKey {
    pub name: String,
    pub scopes: Scopes,
    /// The projects; `None`: those of the caller.
    #[serde(default)]
    pub project: Option<KeyProject>,
    #[serde(default)]
    pub senders: Option<String>,
    #[serde(default)]
    pub expires: Option<i64>,
}

impl NewKey {
    /// Checks the properties; the error names the property and the remedy.
    ///
    /// # Errors
    /// A property is invalid.
    pub fn check(&self, now: UnixMillis) -> Result<(), String> {
        check_line("name", &self.name, NAME_BYTES_MAX)?;
        if self.scopes == Scopes::NONE {
            let names = "ingest, read, objects, admin, operate";
            return Err(format!("scopes: a key needs at least one scope of {names}"));
        }
        let is_of_operators = self.project.as_ref().is_none_or(KeyProject::is_of_operators);
        if self.scopes.granted().contains(Scopes::of(&[Scope::Operate])) && !is_of_operators {
            return Err(
                "scopes: operate shows the state of all projects: only keys of the project \
                        default, or of all projects (*), may have it"
                    .to_owned(),
            );
        }
        if let Some(senders) = &self.senders {
            check_line("senders", senders, SENDERS_BYTES_MAX)?;
            if self.scopes.granted().contains(Scopes::of(&[Scope::Admin])) {
                return Err("senders: a key with the scope admin cannot be limited to senders, \
                            because it may delete the series and hosts of all"
                    .to_owned());
            }
        }
        if self.expires.is_some_and(|expires| expires <= now.0) {
            return Err("expires: the time is in the past".to_owned());
        }
        Ok(())
    }

    /// Returns the record of the key with the secret's digest.
    pub fn record(self, digest: Digest, created_by: &str, now: UnixMillis) -> KeyRecord {
        let Self { name, scopes, project, senders, expires } = self;
        KeyRecord {
            name,
            scopes,
            project: project.unwrap_or_default(),
            senders,
            one_sender: false,
            life_ms: None,
            created: now.0,
            created_by: created_by.to_owned(),
            expires,
            secrets: vec![Secret { sha256: digest, until: None }],
        }
    }
}

pub(super) fn check_line(field: &str, text: &str, bytes_max: usize) -> Result<(), String> {
    if text.trim().is_empty() || text.len() > bytes_max || text.contains(char::is_control) {
        return Err(format!(
            "{field}: must have 1 to {bytes_max} bytes without control characters"
        ));
    }
    Ok(())
}

impl KeyRecord {
    /// Replaces the secret. The present one stays valid for the time `overlap_ms`; an earlier one
    /// becomes invalid.
    pub fn rotate(&mut self, digest: Digest, now: UnixMillis, overlap_ms: i64) {
        let present = self.secrets.first().copied();
        self.secrets = vec![Secret { sha256: digest, until: None }];
        if let Some(present) = present.filter(|_| overlap_ms > 0) {
            let until = now.0.saturating_add(overlap_ms.min(OVERLAP_MS_MAX));
            self.secrets.push(Secret { until: Some(until), ..present });
        }
    }

    /// Replaces the secret, and sets a new time of expiry. The secret that the holder used stays
    /// valid for [`RENEWAL_OVERLAP_MS`], but no longer than the key was before. The answer to an
    /// earlier renewal may be lost, so the secret that the holder used is kept, even when it is not
    /// the newest.
    pub(super) fn renew(
        &mut self,
        (used, new): (Digest, Digest),
        now: UnixMillis,
    ) -> Result<(), ()> {
        let life_ms = self.life_ms.ok_or(())?;
        let found = self.secrets.iter().find(|secret| secret.sha256 == used);
        let end = found.and_then(|secret| secret.until).or(self.expires).unwrap_or(i64::MAX);
        let until = end.min(now.0.saturating_add(RENEWAL_OVERLAP_MS));
        self.secrets =
            vec![Secret { sha256: new, until: None }, Secret { sha256: used, until: Some(until) }];
        self.expires = Some(now.0.saturating_add(life_ms));
        Ok(())
    }

    /// Returns the time until which the previous secret is valid, if it is valid.
    pub fn overlap_until(&self, now: UnixMillis) -> Option<i64> {
        self.secrets.get(1).and_then(|secret| secret.until).filter(|until| now.0 < *until)
    }

    /// Returns true if the key has not expired.
    pub fn is_current(&self, now: UnixMillis) -> bool {
        self.expires.is_none_or(|expires| now.0 < expires)
    }
}
