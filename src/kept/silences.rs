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
pub struct KnownSilences(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    records: Records<Silence>,
    kept_ms: i64,
    known: RwLock<Arc<Silences>>,
    /// Changes hold this lock.
    changing: Mutex<()>,
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
        let known = RwLock::new(Arc::new(found.collect()));
        let (kept_ms, changing) = (kept.as_millis() as i64, Mutex::default());
        Ok(Self(Arc::new(Inner { records, kept_ms, known, changing })))
    }

    /// Returns the current silences.
    pub fn known(&self) -> Arc<Silences> {
        self.0.known.read().clone()
    }

    /// Returns the time for which expired silences are kept, in milliseconds.
    pub fn kept_ms(&self) -> i64 {
        self.0.kept_ms
    }

    /// Returns true when an alert with these labels is silenced at a time.
    pub fn is_silenced(&self, labels: &LabelSet, at: UnixMillis) -> bool {
        self.known().is_silenced(labels, at)
    }

    /// Creates or changes a silence, durably; returns its id.
    ///
    /// # Errors
    /// The silence is invalid, or the store cannot be written.
    pub fn want(&self, new: NewSilence, now: UnixMillis) -> Result<String, SilencingFault> {
        let _changing = self.0.changing.lock();
        self.forget(now)?;
        // Expired silences are removed only for a valid new one.
        let over = self.known().making_room(&new, now);
        let mut others = Silences::clone(&self.known());
        for id in &over {
            others.remove(id);
        }
        let changed = others.want(new, fresh_id(), now)?;
        over.iter().try_for_each(|id| self.remove(id))?;
        let id = changed.first().map(|silence| silence.id.clone()).unwrap_or_default();
        self.keep(changed, now)?;
        Ok(id)
    }

    /// Expires a silence, durably.
    ///
    /// # Errors
    /// There is no such silence, or the store cannot be written.
    pub fn expire(&self, id: &str, now: UnixMillis) -> Result<(), SilencingFault> {
        let _changing = self.0.changing.lock();
        self.forget(now)?;
        let ended = self.known().expire(id, now)?;
        match self.keep(vec![ended], now) {
            // Expiry must work in a full store.
            Err(SilencingFault::Refused(ObjectRefusal::QuotaReached)) => self.remove(id),
            outcome => outcome,
        }
    }

    /// Stores the changes, a new silence before the one it replaces: after a crash both are active.
    fn keep(&self, changed: Vec<Silence>, now: UnixMillis) -> Result<(), SilencingFault> {
        for silence in changed {
            let records = &self.0.records;
            let mut put = records.put(&silence.id, &silence, now)?;
            while matches!(put, Err(ObjectRefusal::QuotaReached)) {
                // Expired silences are removed first to free space.
                let known = self.known();
                let Some(over) =
                    known.over(now).into_iter().find(|silence_over| silence_over.id != silence.id)
                else {
                    break;
                };
                self.remove(&over.id)?;
                put = records.put(&silence.id, &silence, now)?;
            }
            put?;
            self.adopt(|all| all.put(silence));
        }
        Ok(())
    }

    fn forget(&self, now: UnixMillis) -> Result<(), SilencingFault> {
        for id in self.known().forgotten(now, self.0.kept_ms) {
            self.remove(&id)?;
        }
        Ok(())
    }

    fn remove(&self, id: &str) -> Result<(), SilencingFault> {
        self.0.records.remove(id)??;
        self.adopt(|all| all.remove(id));
        Ok(())
    }

    fn adopt(&self, change: impl FnOnce(&mut Silences)) {
        let mut all = Silences::clone(&self.known());
        change(&mut all);
        *self.0.known.write() = Arc::new(all);
    }
}

/// Returns a UUID of version 4 (RFC 9562), which Alertmanager's clients expect.
fn fresh_id() -> String {
    let random = fastrand::u128(..);
    let random = random & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let digits = format!("{random:032x}");
    let mut out = String::with_capacity(36);
    for (at, digit) in digits.chars().enumerate() {
        if matches!(at, 8 | 12 | 16 | 20) {
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
        let ids: Vec<_> = (0..100).map(|_| fresh_id()).collect();
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
