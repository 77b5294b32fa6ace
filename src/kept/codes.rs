//! One-time codes: objects of the store, loaded once. A code is removed durably before its right is
//! granted, so that a crash cannot make it valid twice.
//!
//! Must never know: HTTP, what a code is used for.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;

use super::{KeyFault, ObjectFault, Records};
use crate::{
    access::{Caller, CodeRecord, CodeSet, KeyProject, NewCode, Purpose, Scopes, Token},
    model::{ProjectName, UnixMillis},
    store::{ObjectKind, Store, StoreError},
};

/// The codes. Clones are cheap.
#[derive(Debug, Clone)]
pub struct KnownCodes(Arc<SharedCodes>);

#[derive(Debug)]
struct SharedCodes {
    records: Records<CodeRecord>,
    /// The codes, locked during each change and each use.
    codes: Mutex<CodeSet>,
}

/// A code in an answer, without its secret. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodeAnswer {
    id: String,
    purpose: Purpose,
    scopes: Scopes,
    project: ProjectName,
    senders: Option<String>,
    created: i64,
    created_by: String,
    expires: i64,
    key_life_ms: Option<i64>,
}

impl CodeAnswer {
    fn new(id: &str, record: &CodeRecord) -> Self {
        Self {
            id: id.to_owned(),
            purpose: record.purpose,
            scopes: record.scopes,
            project: record.project.clone(),
            senders: record.senders.clone(),
            created: record.created,
            created_by: record.created_by.clone(),
            expires: record.expires,
            key_life_ms: record.key_life_ms,
        }
    }
}

/// A new code with its text, which is shown once.
#[derive(Debug, Serialize)]
pub struct NewCodeAnswer {
    code: CodeAnswer,
    text: String,
}

impl NewCodeAnswer {
    /// Returns the characters that identify the code.
    pub fn id(&self) -> &str {
        &self.code.id
    }

    /// Returns the text that is sent to use the code.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl KnownCodes {
    /// Loads the codes of a store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn open(store: &Store) -> Result<Self, StoreError> {
        let records = Records::new(store, ObjectKind::Code);
        let mut codes = CodeSet::default();
        for (id, record) in records.load()? {
            codes.put(id, record);
        }
        Ok(Self(Arc::new(SharedCodes { records, codes: Mutex::new(codes) })))
    }

    /// Returns the codes of the caller's projects that have not expired, by id.
    pub fn list(&self, caller: Option<&Caller>, now: UnixMillis) -> Vec<CodeAnswer> {
        let codes = self.0.codes.lock();
        let is_shown = |record: &CodeRecord| record.is_current(now) && is_visible(record, caller);
        let current = codes.iter().filter(|(_, record)| is_shown(record));
        current.map(|(id, record)| CodeAnswer::new(id, record)).collect()
    }

    /// Creates a code, durably, and removes expired ones.
    ///
    /// # Errors
    /// The code is invalid, there are too many, or the store cannot be written.
    pub fn create(
        &self,
        new: NewCode,
        created_by: &str,
        now: UnixMillis,
    ) -> Result<NewCodeAnswer, KeyFault> {
        new.check().map_err(ObjectFault::Invalid)?;
        let mut codes = self.0.codes.lock();
        for id in codes.expired(now) {
            self.0.records.remove(&id)??;
            codes.remove(&id);
        }
        let token = Token::random_code()?;
        let (id, record) = (token.id(), new.record(&token, created_by, now));
        self.0.records.put(&id, &record, now)??;
        let code = CodeAnswer::new(&id, &record);
        codes.put(id, record);
        Ok(NewCodeAnswer { code, text: token.reveal() })
    }

    /// Removes a code, durably.
    ///
    /// # Errors
    /// There is no such code of the caller's projects, or the store cannot be written.
    pub fn revoke(&self, id: &str, caller: Option<&Caller>) -> Result<(), KeyFault> {
        let mut codes = self.0.codes.lock();
        if codes.iter().any(|(known, record)| known == id && !is_visible(record, caller)) {
            return Err(no_code(id).into());
        }
        // The code is invalid before the store is written, as with keys.
        codes.remove(id).ok_or_else(|| no_code(id))?;
        Ok(self.0.records.remove(id)??)
    }

    /// Removes all codes with a purpose, durably.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn revoke_all(&self, purpose: Purpose) -> Result<(), KeyFault> {
        let mut codes = self.0.codes.lock();
        let matching = codes.iter().filter(|(_, record)| record.purpose == purpose);
        let matching: Vec<_> = matching.map(|(id, _)| id.clone()).collect();
        for id in matching {
            codes.remove(&id);
            self.0.records.remove(&id)??;
        }
        Ok(())
    }

    /// Uses a code: checks it, and removes it durably. Before its removal, `accepts` may refuse it,
    /// so that a request with another mistake does not use it up.
    ///
    /// # Errors
    /// The code is not valid or not accepted, or the store cannot be written.
    pub fn redeem(
        &self,
        text: &str,
        purpose: Purpose,
        now: UnixMillis,
        accepts: impl FnOnce(&CodeRecord) -> Result<(), ObjectFault>,
    ) -> Result<CodeRecord, KeyFault> {
        let mut codes = self.0.codes.lock();
        let found = codes.find(text.as_bytes(), purpose, now);
        let (id, record) = found.ok_or(KeyFault::WrongCode)?;
        accepts(record)?;
        self.0.records.remove(&id)??;
        codes.remove(&id).ok_or(KeyFault::WrongCode)
    }
}

/// Returns true when a caller may know of a code; codes of other projects do not exist for it.
fn is_visible(record: &CodeRecord, caller: Option<&Caller>) -> bool {
    let project = KeyProject::One(record.project.clone());
    caller.is_none_or(|caller| caller.project().includes(&project))
}

fn no_code(id: &str) -> ObjectFault {
    ObjectFault::NotFound(format!("there is no code {id:?}; `granary key codes` shows the ids"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::Scope,
        faulty::{Call, EIO, Effect, Fault, FaultyMedium},
        model::GranularitySet,
        setup::{NOW, open_on},
    };

    fn new_code(valid_ms: i64) -> NewCode {
        NewCode {
            purpose: Purpose::Enroll,
            scopes: Scopes::of(&[Scope::Ingest]),
            project: ProjectName::default(),
            senders: None,
            valid_ms,
            key_life_ms: None,
        }
    }

    #[test]
    fn a_code_is_used_once_also_after_a_restart_and_a_failed_write() {
        let (medium, now) = (FaultyMedium::new(1), NOW);
        let (store, _appender) = open_on(Arc::new(medium.clone()), &GranularitySet::default(), now);
        let codes = KnownCodes::open(&store).unwrap();
        let made = codes.create(new_code(60_000), "root", now).unwrap();
        let redeem = |codes: &KnownCodes| {
            codes.redeem(made.text(), Purpose::Enroll, now, |_| Ok(())).map(|_| ())
        };
        let refuse = |_: &CodeRecord| Err(ObjectFault::Invalid("no".to_owned()));
        assert!(codes.redeem(made.text(), Purpose::Enroll, now, refuse).is_err());
        medium.arm(Fault {
            call: Call::Sync,
            after: 0,
            times: u64::MAX,
            effect: Effect::Error(EIO),
        });
        assert!(matches!(redeem(&codes), Err(KeyFault::Object(_))));
        medium.lift();
        redeem(&codes).unwrap();
        for codes in [codes, KnownCodes::open(&store).unwrap()] {
            assert!(matches!(redeem(&codes), Err(KeyFault::WrongCode)));
        }
    }

    #[test]
    fn expired_codes_are_removed_when_the_next_one_is_made() {
        let (store, _appender) =
            open_on(Arc::new(FaultyMedium::new(1)), &GranularitySet::default(), NOW);
        let codes = KnownCodes::open(&store).unwrap();
        codes.create(new_code(60_000), "root", NOW).unwrap();
        let later = NOW.plus(60_000);
        assert_eq!((codes.list(None, NOW).len(), codes.list(None, later).len()), (1, 0));
        let made = codes.create(new_code(60_000), "root", later).unwrap();
        let stored = KnownCodes::open(&store).unwrap().list(None, NOW);
        assert_eq!(stored, std::slice::from_ref(&made.code));
        codes.revoke(&made.code.id, None).unwrap();
        assert!(
            codes.revoke(&made.code.id, None).unwrap_err().to_string().contains("there is no code")
        );
        assert_eq!(KnownCodes::open(&store).unwrap().list(None, NOW), []);
    }
}
