//! Sessions of users: the text in the cookie, its digest, and the limits of time and number.
//!
//! A cookie has 256 random bits, of which only the SHA-256 is stored.

use std::{
    collections::HashMap,
    fmt, io,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::token::{self, Digest};
use crate::model::UnixMillis;

/// The time without a request after which a session ends.
pub const SESSION_IDLE_MS: i64 = 12 * 3_600_000;
/// The time after which a session ends.
pub const SESSION_AGE_MAX_MS: i64 = 7 * 86_400_000;
/// The maximum number of sessions.
pub const SESSIONS_MAX: usize = 10_000;
/// The maximum number of sessions of a user.
pub const USER_SESSIONS_MAX: usize = 20;
/// The maximum number of ended sessions that one login removes.
const REMOVED_AT_ONCE_MAX: usize = 8;

/// The text of a new session's cookie.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionToken(String);

impl fmt::Debug for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionToken(..)")
    }
}

impl SessionToken {
    /// Creates a text from the system's random numbers.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> io::Result<Self> {
        Ok(Self(token::random_secret()?))
    }

    /// Returns the value of the cookie.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the digest that identifies the session.
    pub fn id(&self) -> Digest {
        token::digest(self.0.as_bytes())
    }
}

/// Returns the digest of a cookie's value; `None` when the value is not the text of a session.
pub fn session_id(cookie: &[u8]) -> Option<Digest> {
    token::is_secret(cookie).then(|| token::digest(cookie))
}

/// Returns the text that each change with a cookie must repeat in a header, which pages of other
/// sites cannot know.
pub fn csrf_of(cookie: &[u8]) -> Digest {
    // Any length of a key is valid for HMAC.
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(cookie) else { return Digest::ZERO };
    let sum = mac.chain_update(b"granary csrf").finalize().into_bytes();
    Digest::of_bytes(sum.into())
}

/// Returns true if a header has the text of [`csrf_of`].
pub fn is_csrf_of(cookie: &[u8], header: &[u8]) -> bool {
    csrf_of(cookie).to_string().as_bytes().ct_eq(header).into()
}

/// The stored part of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// The user's name.
    pub user: String,
    /// The time of the login in Unix milliseconds.
    pub created: i64,
    /// The generation of the user at the login.
    pub generation: u64,
}

/// A session in memory.
#[derive(Debug)]
pub struct Session {
    /// The stored part.
    pub record: SessionRecord,
    /// The time of the last request.
    used: AtomicI64,
    /// The address of the last request; `None` before the first request after a start of the
    /// daemon.
    address: Mutex<Option<IpAddr>>,
}

impl Session {
    /// Returns the latest end in Unix milliseconds.
    pub fn expires(&self) -> i64 {
        self.record.created.saturating_add(SESSION_AGE_MAX_MS)
    }

    /// Returns the time of the last request in Unix milliseconds.
    pub fn used(&self) -> i64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the address of the last request, if it is known.
    pub fn address(&self) -> Option<IpAddr> {
        *self.address.lock()
    }

    /// Notes the address of a request.
    pub fn note_address(&self, address: IpAddr) {
        *self.address.lock() = Some(address.to_canonical());
    }

    fn is_current(&self, now: UnixMillis) -> bool {
        let idle = now.0.saturating_sub(self.used.load(Ordering::Relaxed));
        now.0 < self.expires() && idle < SESSION_IDLE_MS
    }
}

/// The sessions of a daemon.
#[derive(Debug, Default)]
pub struct SessionSet(HashMap<Digest, Arc<Session>>);

impl SessionSet {
    /// Adds a session whose last request is now.
    pub fn insert(&mut self, id: Digest, record: SessionRecord, now: UnixMillis) -> Arc<Session> {
        let session = Session { record, used: AtomicI64::new(now.0), address: Mutex::default() };
        let session = Arc::new(session);
        self.0.insert(id, session.clone());
        session
    }

    /// Removes a session.
    pub fn remove(&mut self, id: &Digest) {
        self.0.remove(id);
    }

    /// Returns a session that has not expired, and notes its use.
    pub fn used(&self, id: &Digest, now: UnixMillis) -> Option<Arc<Session>> {
        let session = self.current(id, now)?;
        session.used.store(now.0, Ordering::Relaxed);
        Some(session)
    }

    /// Returns a session that has not expired.
    pub fn current(&self, id: &Digest, now: UnixMillis) -> Option<Arc<Session>> {
        self.0.get(id).filter(|session| session.is_current(now)).cloned()
    }

    /// Returns all sessions that have not expired.
    pub fn all(&self, now: UnixMillis) -> impl Iterator<Item = (&Digest, &Arc<Session>)> {
        self.0.iter().filter(move |(_, session)| session.is_current(now))
    }

    /// Returns the sessions that must end before a user begins another one: some of the expired or
    /// invalid sessions, and the oldest sessions beyond the limits.
    pub fn excess(
        &self,
        user: &str,
        now: UnixMillis,
        is_valid: impl Fn(&SessionRecord) -> bool,
    ) -> Vec<Digest> {
        let lives = |session: &Session| session.is_current(now) && is_valid(&session.record);
        let (mut ended, mut alive): (Vec<_>, Vec<_>) =
            self.0.iter().partition(|(_, session)| !lives(session));
        alive.sort_by_key(|(_, session)| session.used.load(Ordering::Relaxed));
        let is_own = |pair: &&(&Digest, &Arc<Session>)| pair.1.record.user == user;
        let own = alive.iter().filter(is_own).count();
        let oldest = alive.iter().filter(is_own);
        let mut excess: Vec<_> =
            oldest.take((own + 1).saturating_sub(USER_SESSIONS_MAX)).map(|(id, _)| **id).collect();
        let total = |excess: &[Digest]| self.0.len() + 1 - excess.len();
        ended.sort_by_key(|(_, session)| session.record.created);
        let ended = ended.into_iter().map(|(id, _)| *id);
        for (count, id) in ended.enumerate() {
            if count >= REMOVED_AT_ONCE_MAX && total(&excess) <= SESSIONS_MAX {
                break;
            }
            excess.push(id);
        }
        let beyond = total(&excess).saturating_sub(SESSIONS_MAX);
        let others = alive.iter().map(|(id, _)| **id).filter(|id| !excess.contains(id));
        let others: Vec<_> = others.take(beyond).collect();
        excess.extend(others);
        excess
    }

    /// Returns the number of sessions, including expired ones that were not removed yet.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_800_000_000_000);

    fn record(user: &str, created: UnixMillis) -> SessionRecord {
        SessionRecord { user: user.to_owned(), created: created.0, generation: 1 }
    }

    fn add(set: &mut SessionSet, user: &str, now: UnixMillis) -> Digest {
        for id in set.excess(user, now, |record| record.generation == 1) {
            set.remove(&id);
        }
        let id = SessionToken::random().unwrap().id();
        set.insert(id, record(user, now), now);
        id
    }

    #[test]
    fn a_session_ends_when_it_is_idle_and_after_a_week() {
        let mut set = SessionSet::default();
        let id = add(&mut set, "ann", NOW);
        assert!(set.current(&id, NOW.plus(SESSION_IDLE_MS - 1)).is_some());
        assert!(set.current(&id, NOW.plus(SESSION_IDLE_MS)).is_none());
        let mut now = NOW;
        while now.0 < NOW.0 + SESSION_AGE_MAX_MS {
            assert!(set.used(&id, now).is_some(), "{now:?}");
            now = now.plus(SESSION_IDLE_MS - 1);
        }
        assert!(set.used(&id, NOW.plus(SESSION_AGE_MAX_MS)).is_none());
    }

    #[test]
    fn a_user_has_at_most_twenty_sessions_and_the_least_used_ends() {
        let mut set = SessionSet::default();
        let other = add(&mut set, "bob", NOW);
        let ids: Vec<_> =
            (0..20).map(|minute| add(&mut set, "ann", NOW.plus(minute * 60_000))).collect();
        let now = NOW.plus(3_600_000);
        assert!(set.used(&ids[0], now).is_some());
        add(&mut set, "ann", now);
        let alive = |id: &Digest| set.current(id, now).is_some();
        assert_eq!((alive(&ids[0]), alive(&ids[1]), alive(&other)), (true, false, true));
        assert_eq!(set.len(), 21);
    }

    #[test]
    fn expired_sessions_are_removed_and_a_million_logins_take_bounded_memory() {
        let mut set = SessionSet::default();
        for number in 0..SESSIONS_MAX {
            let id = token::digest(&number.to_be_bytes());
            set.insert(id, record(&number.to_string(), NOW), NOW);
        }
        let last = add(&mut set, "ann", NOW);
        assert_eq!(set.len(), SESSIONS_MAX);
        // All but one have expired: each login removes some.
        let later = NOW.plus(SESSION_AGE_MAX_MS);
        for number in 0..20 {
            add(&mut set, &format!("new{number}"), later);
        }
        assert_eq!(set.len(), SESSIONS_MAX - 20 * (REMOVED_AT_ONCE_MAX - 1));
        assert_eq!(set.all(later).count(), 20);
        assert!(set.current(&last, later).is_none());
    }

    #[test]
    fn the_header_of_a_change_fits_only_its_cookie() {
        let (one, other) = (SessionToken::random().unwrap(), SessionToken::random().unwrap());
        let cookie = one.reveal().as_bytes();
        let csrf = csrf_of(cookie).to_string();
        assert!(is_csrf_of(cookie, csrf.as_bytes()));
        assert!(!is_csrf_of(other.reveal().as_bytes(), csrf.as_bytes()));
        assert!(!is_csrf_of(cookie, b"") && !is_csrf_of(cookie, cookie));
        assert_eq!(session_id(cookie), Some(one.id()));
        assert!(session_id(b"short").is_none() && session_id(&[b'A'; 52]).is_none());
        assert!(!format!("{one:?}").contains(one.reveal()));
    }
}
