//! Keys in memory, and the check of the text that a client sends.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use subtle::{Choice, ConstantTimeEq};

use super::{
    project::KeyProject,
    record::{KeyRecord, Secret},
    scopes::Scopes,
    token::{self, Digest, KeyId, TokenKind, id_text},
};
use crate::model::UnixMillis;

/// A key in memory.
#[derive(Debug)]
pub struct Key {
    /// The stored part.
    pub record: KeyRecord,
    /// The digests in an array, so that a check takes the same time for each key.
    secrets: [Secret; 2],
    /// The time of the last use since the start; 0: none.
    used: Arc<AtomicI64>,
}

impl Key {
    fn new(record: KeyRecord, used: Arc<AtomicI64>) -> Self {
        let secret = |at: usize| record.secrets.get(at).copied().unwrap_or(Secret::NONE);
        let secrets = [secret(0), secret(1)];
        Self { record, secrets, used }
    }

    /// Returns the time of the last use since the start.
    pub fn used(&self) -> Option<i64> {
        Some(self.used.load(Ordering::Relaxed)).filter(|at| *at != 0)
    }

    fn fits(&self, digest: &Digest, now: UnixMillis) -> Choice {
        let fits = |secret: &Secret| {
            secret.sha256.as_bytes().ct_eq(digest.as_bytes())
                & Choice::from(u8::from(secret.is_valid(now)))
        };
        let [present, previous] = &self.secrets;
        fits(present) | fits(previous)
    }
}

/// The reason why a text is not a valid key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRefusal {
    /// The text does not have the form of a key.
    Form,
    /// The key is unknown, its secret is wrong or was replaced, or it has expired.
    Wrong,
}

/// A key that a request contains, as of its check.
#[derive(Debug, Clone)]
pub struct KeyCaller {
    /// The key.
    pub key: Arc<Key>,
    digest: Digest,
    id: KeyId,
}

impl KeyCaller {
    /// Returns the characters that identify the key.
    pub fn id(&self) -> String {
        id_text(&self.id)
    }

    /// Returns true when the holder of the key should renew it: the last third of its life has
    /// begun, or the request came with the secret that a renewal replaced.
    pub fn should_renew(&self, now: UnixMillis) -> bool {
        let Key { record, secrets: [present, _], .. } = &*self.key;
        let Some(life_ms) = record.life_ms else { return false };
        let is_late = record.expires.is_some_and(|expires| expires - now.0 <= life_ms / 3);
        is_late || present.sha256 != self.digest
    }

    /// Returns the present record of the key with a new secret and a new time of expiry.
    ///
    /// # Errors
    /// The holder of the key may not renew it.
    pub fn renewed(
        &self,
        present: &KeyRecord,
        digest: Digest,
        now: UnixMillis,
    ) -> Result<KeyRecord, String> {
        let mut record = present.clone();
        record.renew((self.digest, digest), now).map_err(|()| {
            format!(
                "the key {:?} cannot be renewed by its holder: rotate it with `granary key rotate`",
                self.key.record.name
            )
        })?;
        Ok(record)
    }
}

/// All keys of a daemon.
#[derive(Debug, Clone)]
pub struct KeySet {
    by_id: HashMap<KeyId, Arc<Key>>,
    /// The key that is compared when no key has the id, so that the check takes the same time.
    nobody: Arc<Key>,
}

impl Default for KeySet {
    fn default() -> Self {
        let record = KeyRecord {
            name: String::new(),
            scopes: Scopes::NONE,
            project: KeyProject::default(),
            senders: None,
            created: 0,
            created_by: String::new(),
            expires: None,
            one_sender: false,
            life_ms: None,
            secrets: Vec::new(),
        };
        Self { by_id: HashMap::new(), nobody: Arc::new(Key::new(record, Arc::default())) }
    }
}

impl KeySet {
    /// Adds or replaces a key; returns false when the id is invalid.
    pub fn put(&mut self, id: &str, record: KeyRecord) -> bool {
        let Some(id) = token::parse_id(id) else { return false };
        let used = self.by_id.get(&id).map_or_else(Arc::default, |key| key.used.clone());
        self.by_id.insert(id, Arc::new(Key::new(record, used)));
        true
    }

    /// Removes a key.
    pub fn remove(&mut self, id: &str) {
        if let Some(id) = token::parse_id(id) {
            self.by_id.remove(&id);
        }
    }

    /// Returns the key with an id.
    pub fn get(&self, id: &str) -> Option<&Arc<Key>> {
        self.by_id.get(&token::parse_id(id)?)
    }

    /// Returns the number of keys.
    pub fn count(&self) -> usize {
        self.by_id.len()
    }

    /// Returns true if a key has this name.
    pub fn has_name(&self, name: &str, project: &KeyProject) -> bool {
        let is_such = |record: &KeyRecord| record.name == name && record.project == *project;
        self.by_id.values().any(|key| is_such(&key.record))
    }

    /// Returns all keys with their ids, by name.
    pub fn list(&self) -> Vec<(String, Arc<Key>)> {
        let mut all: Vec<_> =
            self.by_id.iter().map(|(id, key)| (id_text(id), key.clone())).collect();
        all.sort_by(|(_, one), (_, other)| one.record.name.cmp(&other.record.name));
        all
    }

    /// Checks the text that a client sent, and notes the use of the key. Allocates nothing, and
    /// takes the same time for all keys with a wrong secret.
    ///
    /// # Errors
    /// The text is not a valid key at this time.
    pub fn check(&self, text: &[u8], now: UnixMillis) -> Result<KeyCaller, KeyRefusal> {
        let (id, secret) = token::parse(TokenKind::Key, text).ok_or(KeyRefusal::Form)?;
        let digest = token::digest(secret);
        let known = self.by_id.get(&id);
        let key = known.unwrap_or(&self.nobody);
        let fits = bool::from(key.fits(&digest, now));
        if known.is_none() || !fits || !key.record.is_current(now) {
            return Err(KeyRefusal::Wrong);
        }
        key.used.store(now.0, Ordering::Relaxed);
        Ok(KeyCaller { key: key.clone(), digest, id })
    }

    /// Returns true if the key of an earlier check is still valid: it may have been rotated or
    /// revoked, or have expired.
    pub fn is_valid(&self, caller: &KeyCaller, now: UnixMillis) -> bool {
        self.by_id.get(&caller.id).is_some_and(|key| {
            bool::from(key.fits(&caller.digest, now)) && key.record.is_current(now)
        })
    }

    /// Returns true if a key that has not expired grants these scopes.
    pub fn has_key_with(&self, scopes: Scopes, now: UnixMillis) -> bool {
        let is_such = |key: &Arc<Key>| {
            key.record.scopes.granted().contains(scopes) && key.record.is_current(now)
        };
        self.by_id.values().any(is_such)
    }
}

#[cfg(test)]
mod tests;
