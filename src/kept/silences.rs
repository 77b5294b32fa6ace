//! The silences: objects of the store, loaded once, changed one after the other.
//!
//! Must never know: HTTP, alerts.

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, RwLock};

use super::Records;
use crate::{
    alerts::{LabelSet, NewSilence, Silence, SilenceFault, Silences},
    model::UnixMillis,
    store::{ObjectKind, ObjectRefusal, Store, StoreError},
};

/// The silences. Clones are cheap.
#[derive(Debug, Clone)]
pub struct KnownSilences(Arc<SharedSilences>);

#[derive(Debug)]
struct SharedSilences {
    records: Records<Silence>,
    kept_ms: i64,
    silences: RwLock<Arc<Silences>>,
    /// Changes hold this lock.
    change_lock: Mutex<()>,
}

/// The reason why silences were not changed.
#[derive(Debug, thiserror::Error)]
pub enum SilencingFault {
    /// The requested silence is invalid.
    #[error(transparent)]
    Silence(#[from] SilenceFault),
    /// The store refuses another object.
    #[error(transparent)]
    Refused(#[from] ObjectRefusal),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl KnownSilences {
    /// Loads the silences of a store, which keeps expired ones for the time `kept`.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn open(store: &Store, kept: Duration) -> Result<Self, StoreError> {
        let records = Records::new(store, ObjectKind::Silence);
        let found = records.load()?.into_iter().map(|(_, silence)| silence);
        let silences = RwLock::new(Arc::new(found.collect()));
        let (kept_ms, change_lock) = (kept.as_millis() as i64, Mutex::default());
        Ok(Self(Arc::new(SharedSilences { records, kept_ms, silences, change_lock })))
    }

    /// Returns the current silences.
    pub fn current(&self) -> Arc<Silences> {
        self.0.silences.read().clone()
    }

    /// Returns the time for which expired silences are kept, in milliseconds.
    pub fn kept_ms(&self) -> i64 {
        self.0.kept_ms
    }

    /// Returns true when an alert with these labels is silenced at a time.
    pub fn is_silenced(&self, labels: &LabelSet, at: UnixMillis) -> bool {
        self.current().is_silenced(labels, at)
    }

    /// Creates or changes a silence, durably; returns its ID.
    ///
    /// # Errors
    /// The silence is invalid, or the store cannot be written.
    pub fn create_or_change(
        &self,
        new: NewSilence,
        now: UnixMillis,
    ) -> Result<String, SilencingFault> {
        let _change_lock = self.0.change_lock.lock();
        self.remove_forgotten(now)?;
        // Expired silences are removed only for a valid new one.
        let expired = self.current().expired_to_remove(&new, now);
        let mut others = Silences::clone(&self.current());
        for id in &expired {
            others.remove(id);
        }
        let changed = others.create_or_change(new, random_id(), now)?;
        expired.iter().try_for_each(|id| self.remove(id))?;
        let id = changed.first().map(|silence| silence.id.clone()).unwrap_or_default();
        self.store(changed, now)?;
        Ok(id)
    }

    /// Expires a silence, durably.
    ///
    /// # Errors
    /// There is no such silence, or the store cannot be written.
    pub fn expire(&self, id: &str, now: UnixMillis) -> Result<(), SilencingFault> {
        let _change_lock = self.0.change_lock.lock();
        self.remove_forgotten(now)?;
        let ended = self.current().expire(id, now)?;
        match self.store(vec![ended], now) {
            // Expiry must work in a full store.
            Err(SilencingFault::Refused(ObjectRefusal::QuotaReached)) => self.remove(id),
            outcome => outcome,
        }
    }

    /// Stores the changes, a new silence before the one it replaces: after a crash both are active.
    fn store(&self, changed: Vec<Silence>, now: UnixMillis) -> Result<(), SilencingFault> {
        for silence in changed {
            let records = &self.0.records;
            let mut outcome = records.put(&silence.id, &silence, now)?;
            while matches!(outcome, Err(ObjectRefusal::QuotaReached)) {
                // Expired silences are removed first to free space.
                let silences = self.current();
                let Some(expired) =
                    silences.expired(now).into_iter().find(|other| other.id != silence.id)
                else {
                    break;
                };
                self.remove(&expired.id)?;
                outcome = records.put(&silence.id, &silence, now)?;
            }
            outcome?;
            self.update(|all| all.put(silence));
        }
        Ok(())
    }

    fn remove_forgotten(&self, now: UnixMillis) -> Result<(), SilencingFault> {
        for id in self.current().forgotten(now, self.0.kept_ms) {
            self.remove(&id)?;
        }
        Ok(())
    }

    fn remove(&self, id: &str) -> Result<(), SilencingFault> {
        self.0.records.remove(id)??;
        self.update(|all| all.remove(id));
        Ok(())
    }

    fn update(&self, change: impl FnOnce(&mut Silences)) {
        let mut all = Silences::clone(&self.current());
        change(&mut all);
        *self.0.silences.write() = Arc::new(all);
    }
}

/// Returns a UUID of version 4 (RFC 9562), which Alertmanager's clients expect.
fn random_id() -> String {
    let random = fastrand::u128(..);
    let random = random & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let digits = format!("{random:032x}");
    let mut out = String::with_capacity(36);
    for (index, digit) in digits.chars().enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            out.push('-');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_uuids() {
        let ids: Vec<_> = (0..100).map(|_| random_id()).collect();
        for id in &ids {
            let parts: Vec<_> = id.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
            let variant = id.as_bytes()[19];
            assert!(id.as_bytes()[14] == b'4' && b"89ab".contains(&variant), "{id}");
        }
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
    }
}
