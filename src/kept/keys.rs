//! The keys of access control: objects of the store, loaded once, changed one after the other. A
//! change is in effect for all readers when its response is sent.
//!
//! Must never know: HTTP, where a key comes from.

mod answer;

use std::sync::Arc;

use parking_lot::Mutex;

use super::{LiveValue, ObjectFault, Records};
use crate::{
    access::{
        Caller, CodeRecord, KeyCaller, KeyProject, KeyRecord, KeySet, NewKey, OVERLAP_MS_MAX,
        Scope, Scopes, Token,
    },
    model::UnixMillis,
    store::{ObjectKind, Store, StoreError},
};
pub use answer::{KeyAnswer, KeyFault, NewKeyAnswer};

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

    /// Returns the current keys.
    pub fn current(&self) -> Arc<KeySet> {
        self.0.keys.get()
    }

    /// Returns the damaged file that contained the keys, so that no key can be recognized.
    pub fn unread(&self) -> Option<&str> {
        self.0.unread.as_deref()
    }

    /// Returns the keys of the caller's projects by name; without access control, all.
    pub fn list(&self, caller: Option<&Caller>, now: UnixMillis) -> Vec<KeyAnswer> {
        let keys = self.current().list().into_iter();
        let keys = keys.filter(|(_, key)| is_visible(&key.record, caller));
        keys.map(|(id, key)| KeyAnswer::new(id, &key, now)).collect()
    }

    /// Creates a key, durably. Without access control, there is no caller.
    ///
    /// # Errors
    /// The key is invalid or its name exists, it may do more than the caller, or the store cannot
    /// be written.
    pub fn create(
        &self,
        mut new: NewKey,
        caller: Option<&Caller>,
        now: UnixMillis,
    ) -> Result<NewKeyAnswer, KeyFault> {
        let _change_lock = self.0.change_lock.lock();
        self.check_caller(caller, now)?;
        // A new key has the project of its maker. If the maker's key is of all projects, only a key
        // that administers the daemon has all of them, too.
        let is_of_daemon = new.scopes.contains(Scopes::of(&[Scope::Admin, Scope::Operate]));
        let may_inherit = |own: &KeyProject| *own != KeyProject::All || is_of_daemon;
        let own = caller.map(Caller::project).filter(may_inherit);
        let project = new.project.take().or(own).unwrap_or_default();
        new.project = Some(project.clone());
        new.check(now).map_err(ObjectFault::Invalid)?;
        may_grant((new.scopes, &project), new.senders.as_deref(), new.expires, caller)?;
        if self.current().has_name(&new.name, &project) {
            let message = format!("name: a key {:?} exists; rotate it or revoke it", new.name);
            return Err(ObjectFault::Invalid(message).into());
        }
        let token = Token::random()?;
        let created_by = caller.map(Caller::name).unwrap_or_default();
        self.put(&token, new.record(token.digest(), created_by, now), now)
    }

    /// Creates the key of a sender that used a code, durably. The key is limited to the sender.
    ///
    /// # Errors
    /// The sender's name is invalid, or the store cannot be written.
    pub fn enroll(
        &self,
        sender: &str,
        code: &CodeRecord,
        now: UnixMillis,
    ) -> Result<NewKeyAnswer, KeyFault> {
        let _change_lock = self.0.change_lock.lock();
        let token = Token::random()?;
        let mut name = sender.to_owned();
        let project = KeyProject::One(code.project.clone());
        if self.current().has_name(&name, &project) {
            // A host that was installed again. The earlier key stays, because the code does not
            // prove that the host is the same.
            name = format!("{sender} {}", token.id());
        }
        let new = NewKey {
            name,
            scopes: code.scopes,
            project: Some(project),
            senders: Some(sender.to_owned()),
            expires: code.key_life_ms.map(|life_ms| now.0.saturating_add(life_ms)),
        };
        new.check(now).map_err(ObjectFault::Invalid)?;
        let mut record = new.record(token.digest(), &code.created_by, now);
        (record.one_sender, record.life_ms) = (true, code.key_life_ms);
        self.put(&token, record, now)
    }

    /// Renews the caller's key, durably: a new secret for another life. The caller's secret stays
    /// valid for a while, so that no request fails before the caller uses the new one.
    ///
    /// # Errors
    /// The key is not one that its holder renews, or the store cannot be written.
    pub fn renew(&self, caller: &KeyCaller, now: UnixMillis) -> Result<NewKeyAnswer, KeyFault> {
        let _change_lock = self.0.change_lock.lock();
        self.check_caller(Some(&Caller::Key(caller.clone())), now)?;
        let id = caller.id();
        let token = Token::random_for(&id)?.ok_or_else(|| no_key(&id))?;
        // Another renewal may have replaced the record since the caller's check.
        let key = self.current().get(&id).cloned().ok_or_else(|| no_key(&id))?;
        let record = caller.renewed(&key.record, token.digest(), now);
        self.put(&token, record.map_err(ObjectFault::Invalid)?, now)
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
        self.check_caller(caller, now)?;
        if !(0..=OVERLAP_MS_MAX).contains(&overlap_ms) {
            return Err(ObjectFault::Invalid("overlap_ms: use 0 to 90 days".to_owned()).into());
        }
        let mut record = self.current().get(id).ok_or_else(|| no_key(id))?.record.clone();
        if !is_visible(&record, caller) {
            return Err(no_key(id).into());
        }
        let rights = (record.scopes, &record.project);
        may_grant(rights, record.senders.as_deref(), record.expires, caller)?;
        let token = Token::random_for(id)?.ok_or_else(|| no_key(id))?;
        record.rotate(token.digest(), now, overlap_ms);
        self.put(&token, record, now)
    }

    /// Revokes a key, durably.
    ///
    /// # Errors
    /// There is no such key, it may do more than the caller, or the store cannot be written.
    pub fn revoke(
        &self,
        id: &str,
        caller: Option<&Caller>,
        now: UnixMillis,
    ) -> Result<(), KeyFault> {
        let _change_lock = self.0.change_lock.lock();
        self.check_caller(caller, now)?;
        let stored = || self.0.records.get(id).ok().flatten();
        // After a failed write, the key is only in the store.
        let record = match self.current().get(id) {
            Some(key) => key.record.clone(),
            None => stored().ok_or_else(|| no_key(id))?,
        };
        // A caller may end a key that is valid for longer than its own.
        let expires = caller.and_then(Caller::expires);
        if !is_visible(&record, caller) {
            return Err(no_key(id).into());
        }
        let rights = (record.scopes, &record.project);
        may_grant(rights, record.senders.as_deref(), expires, caller)?;
        // The key is invalid before the store is written: a failed write must not leave it valid.
        let mut keys = KeySet::clone(&self.current());
        keys.remove(id);
        self.0.keys.set(keys);
        Ok(self.0.records.remove(id)??)
    }

    /// Checks the caller's key again: it may have ended while the body of the request arrived. The
    /// sessions of users are checked earlier.
    fn check_caller(&self, caller: Option<&Caller>, now: UnixMillis) -> Result<(), KeyFault> {
        match caller {
            Some(Caller::Key(key)) if !self.current().is_valid(key, now) => {
                let name = &key.key.record.name;
                let cause = format!("the key {name:?} was revoked, replaced or expired");
                Err(KeyFault::Forbidden(cause))
            }
            _ => Ok(()),
        }
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
        Ok(NewKeyAnswer::new(KeyAnswer::new(id, &key, now), token.reveal()))
    }
}

/// Refuses a key that may do more than the caller; without access control, there is no caller.
fn may_grant(
    (scopes, project): (Scopes, &KeyProject),
    senders: Option<&str>,
    expires: Option<i64>,
    caller: Option<&Caller>,
) -> Result<(), KeyFault> {
    let granted =
        caller.map_or(Ok(()), |caller| caller.may_grant(scopes, project, senders, expires));
    granted.map_err(KeyFault::Forbidden)
}

/// Returns true when a caller may know of a key; keys of other projects do not exist for it.
fn is_visible(record: &KeyRecord, caller: Option<&Caller>) -> bool {
    caller.is_none_or(|caller| caller.project().includes(&record.project))
}

fn no_key(id: &str) -> ObjectFault {
    ObjectFault::NotFound(format!("there is no key {id:?}; `granary key list` shows the ids"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        faulty::{Call, EIO, Effect, Fault, FaultyMedium},
        model::GranularitySet,
        setup::{NOW, open_on},
    };

    #[test]
    fn a_key_whose_revocation_failed_on_the_disk_is_invalid_and_can_be_revoked_again() {
        let (medium, now) = (FaultyMedium::new(1), NOW);
        let (store, _appender) = open_on(Arc::new(medium.clone()), &GranularitySet::default(), now);
        let keys = KnownKeys::open(&store).unwrap();
        let scopes = Scopes::of(&[Scope::Ingest]);
        let new =
            NewKey { name: "a".to_owned(), scopes, project: None, senders: None, expires: None };
        let made = keys.create(new, None, now).unwrap();
        let is_valid = || keys.current().check(made.token().as_bytes(), now).is_ok();
        assert!(is_valid());
        medium.arm(Fault {
            call: Call::Sync,
            after: 0,
            times: u64::MAX,
            effect: Effect::Error(EIO),
        });
        assert!(keys.revoke(made.id(), None, now).is_err());
        assert!(!is_valid());
        medium.lift();
        keys.revoke(made.id(), None, now).unwrap();
        assert_eq!(KnownKeys::open(&store).unwrap().list(None, now), []);
        let again = keys.revoke(made.id(), None, now).unwrap_err();
        assert!(again.to_string().contains("there is no key"), "{again}");
    }
}
