//! The answers to requests about keys, and the reasons why a request fails.
//!
//! Must never know: HTTP, how keys are stored.

use std::io;

use serde::Serialize;

use crate::{
    access::{Key, KeyProject, Scopes},
    kept::ObjectFault,
    model::UnixMillis,
    store::{ObjectRefusal, StoreError},
};

/// The reason why keys or codes are not shown, changed or used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    /// The request is invalid, or the store refuses it.
    #[error(transparent)]
    Object(#[from] ObjectFault),
    /// A code is unknown, was used, has expired, or is for another purpose.
    #[error("the code is not valid: it is cut, unknown, used or expired")]
    WrongCode,
    /// The caller would get more rights than it has.
    #[error("{0}")]
    Forbidden(String),
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    Random(#[from] io::Error),
}

impl From<StoreError> for KeyFault {
    fn from(cause: StoreError) -> Self {
        Self::Object(cause.into())
    }
}

impl From<ObjectRefusal> for KeyFault {
    fn from(cause: ObjectRefusal) -> Self {
        Self::Object(cause.into())
    }
}

/// A key in an answer, without its secret. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyAnswer {
    id: String,
    name: String,
    scopes: Scopes,
    project: KeyProject,
    senders: Option<String>,
    /// True when `senders` is the whole name of the only sender.
    one_sender: bool,
    created: i64,
    created_by: String,
    expires: Option<i64>,
    /// The life of each secret, when the holder of the key renews it.
    life_ms: Option<i64>,
    /// The time until which the previous secret is valid, after a rotation.
    overlap_until: Option<i64>,
    /// The last use since the daemon started.
    used: Option<i64>,
}

impl KeyAnswer {
    /// Describes a key.
    pub(super) fn new(id: String, key: &Key, now: UnixMillis) -> Self {
        let record = &key.record;
        Self {
            id,
            name: record.name.clone(),
            scopes: record.scopes,
            project: record.project.clone(),
            senders: record.senders.clone(),
            one_sender: record.one_sender,
            created: record.created,
            created_by: record.created_by.clone(),
            expires: record.expires,
            life_ms: record.life_ms,
            overlap_until: record.overlap_until(now),
            used: key.used(),
        }
    }
}

/// A new or rotated key with the text that clients send, which is shown once.
#[derive(Debug, Serialize)]
pub struct NewKeyAnswer {
    key: KeyAnswer,
    token: String,
}

impl NewKeyAnswer {
    /// Creates the answer with the text of a key.
    pub(super) fn new(key: KeyAnswer, token: String) -> Self {
        Self { key, token }
    }

    /// Returns the id of the key.
    #[cfg(test)]
    pub(super) fn id(&self) -> &str {
        &self.key.id
    }

    /// Returns the name of the key.
    pub fn name(&self) -> &str {
        &self.key.name
    }

    /// Returns the text that clients send.
    pub fn token(&self) -> &str {
        &self.token
    }
}
