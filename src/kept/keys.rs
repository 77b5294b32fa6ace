//! The keys of access control: objects of the store, loaded once, changed one after the other. A
//! change is in effect for all readers when its response is sent.
//!
//! Must never know: HTTP, where a key comes from.

use std::{io, sync::Arc};

use parking_lot::Mutex;
use serde::Serialize;

use super::{LiveValue, ObjectFault, Records};
use crate::{
    access::{Caller, Key, KeyRecord, KeySet, NewKey, OVERLAP_MS_MAX, Scopes, Token},
    model::UnixMillis,
    store::{ObjectKind, ObjectRefusal, Store, StoreError},
};

/// The file of the store that contains the keys.
const FILE: &str = "objects.redb";

/// The keys. Clones are cheap.
#[derive(Debug, Clone)]
pub struct KnownKeys(Arc<SharedKeys>);

#[derive(Debug)]
struct SharedKeys {
    records: Records<KeyRecord>,
    keys: LiveValue<KeySet>,
    /// The damaged file, when it contained the keys.
    unread: Option<String>,
    /// Changes hold this lock.
    change_lock: Mutex<()>,
}

/// The reason why keys are not shown or changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    /// The request is invalid, or the store refuses it.
    #[error(transparent)]
    Object(#[from] ObjectFault),
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
    senders: Option<String>,
    created: i64,
    created_by: String,
    expires: Option<i64>,
    /// The time until which the previous secret is valid, after a rotation.
    overlap_until: Option<i64>,
    /// The last use since the daemon started.
    used: Option<i64>,
}

impl KeyAnswer {
    fn new(id: String, key: &Key, now: UnixMillis) -> Self {
        let record = &key.record;
        Self {
            id,
            name: record.name.clone(),
            scopes: record.scopes,
            senders: record.senders.clone(),
            created: record.created,
            created_by: record.created_by.clone(),
            expires: record.expires,
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
    /// Returns the text that clients send.
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl KnownKeys {
    /// Loads the keys of a store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn open(store: &Store) -> Result<Self, StoreError> {
        let records = Records::new(store, ObjectKind::Key);
        let mut keys = KeySet::default();
        for (id, record) in records.load()? {
            if !keys.put(&id, record) {
                tracing::error!(id, "a stored key has no valid id; it is skipped");
            }
        }
        let damaged = store.damaged_partitions().into_iter();
        let unread = damaged.into_iter().find(|name| name.starts_with(FILE));
        let (keys, change_lock) = (LiveValue::new(keys), Mutex::default());
        Ok(Self(Arc::new(SharedKeys { records, keys, unread, change_lock })))
    }

    /// Returns the present keys.
    pub fn current(&self) -> Arc<KeySet> {
        self.0.keys.get()
    }

    /// Returns the damaged file that contained the keys, so that no key can be recognized.
    pub fn unread(&self) -> Option<&str> {
        self.0.unread.as_deref()
    }

    /// Returns all keys by name.
    pub fn list(&self, now: UnixMillis) -> Vec<KeyAnswer> {
        let keys = self.current().list().into_iter();
        keys.map(|(id, key)| KeyAnswer::new(id, &key, now)).collect()
    }

    /// Creates a key, durably. Without access control, there is no caller.
    ///
    /// # Errors
    /// The key is invalid or its name exists, it may do more than the caller, or the store cannot
    /// be written.
    pub fn create(
        &self,
        new: NewKey,
        caller: Option<&Caller>,
        now: UnixMillis,
    ) -> Result<NewKeyAnswer, KeyFault> {
        let _change_lock = self.0.change_lock.lock();
        new.check(now).map_err(ObjectFault::Invalid)?;
        if let Some(caller) = caller {
            let granted = caller.may_grant(new.scopes, new.senders.as_deref());
            granted.map_err(KeyFault::Forbidden)?;
        }
        if self.current().list().iter().any(|(_, key)| key.record.name == new.name) {
            let message = format!("name: a key {:?} exists; rotate it or revoke it", new.name);
            return Err(ObjectFault::Invalid(message).into());
        }
        let token = Token::random()?;
        let created_by = caller.map(Caller::name).unwrap_or_default();
        self.put(&token, new.record(token.digest(), created_by, now), now)
    }

    /// Replaces the secret of a key, durably. The present secret stays valid for `overlap_ms`.
    ///
    /// # Errors
    /// There is no such key, it may do more than the caller, or the store cannot be written.
    pub fn rotate(
        &self,
        id: &str,
        overlap_ms: i64,
        caller: Option<&Caller>,
        now: UnixMillis,
    ) -> Result<NewKeyAnswer, KeyFault> {
        let _change_lock = self.0.change_lock.lock();
        if !(0..=OVERLAP_MS_MAX).contains(&overlap_ms) {
            return Err(ObjectFault::Invalid("overlap_ms: use 0 to 90 days".to_owned()).into());
        }
        let mut record = self.changeable(id, caller)?.record.clone();
        let token = Token::random_for(id)?.ok_or_else(|| no_key(id))?;
        record.rotate(token.digest(), now, overlap_ms);
        self.put(&token, record, now)
    }

    /// Revokes a key, durably.
    ///
    /// # Errors
    /// There is no such key, it may do more than the caller, or the store cannot be written.
    pub fn revoke(&self, id: &str, caller: Option<&Caller>) -> Result<(), KeyFault> {
        let _change_lock = self.0.change_lock.lock();
        self.changeable(id, caller)?;
        // The key is invalid before the store is written: a failed write must not leave it valid.
        let mut keys = KeySet::clone(&self.current());
        keys.remove(id);
        self.0.keys.set(keys);
        Ok(self.0.records.remove(id)??)
    }

    fn changeable(&self, id: &str, caller: Option<&Caller>) -> Result<Arc<Key>, KeyFault> {
        let key = self.current().get(id).cloned().ok_or_else(|| no_key(id))?;
        if let Some(caller) = caller {
            let granted = caller.may_grant(key.record.scopes, key.record.senders.as_deref());
            granted.map_err(KeyFault::Forbidden)?;
        }
        Ok(key)
    }

    fn put(
        &self,
        token: &Token,
        record: KeyRecord,
        now: UnixMillis,
    ) -> Result<NewKeyAnswer, KeyFault> {
        let id = token.id();
        self.0.records.put(&id, &record, now)??;
        let mut keys = KeySet::clone(&self.current());
        keys.put(&id, record);
        let key = keys.get(&id).cloned().ok_or_else(|| no_key(&id))?;
        self.0.keys.set(keys);
        Ok(NewKeyAnswer { key: KeyAnswer::new(id, &key, now), token: token.reveal() })
    }
}

fn no_key(id: &str) -> ObjectFault {
    ObjectFault::NotFound(format!("there is no key {id:?}; `granary key list` shows the ids"))
}
