//! Users and their sessions: objects of the store, loaded once, changed one after the other. A
//! change is in effect for all readers when its response is sent.
//!
//! A session is valid while its user has the generation of the login. A change of rights or of the
//! password gives the user another generation in the same write, which ends all sessions at once,
//! even after a crash; the next logins remove them. Must never know: HTTP, cookies.

mod changes;
mod logins;
mod provided;
mod sessions;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, io, sync::Arc};

use parking_lot::{Mutex, RwLock};
use serde::Serialize;

use super::{LiveValue, ObjectFault, Records};
use crate::{
    access::{
        ALL_PROJECTS, Caller, Digest, Password, Roles, SESSIONS_MAX, SessionRecord, SessionSet,
        User, UserCaller, UserRecord, session_id,
    },
    model::UnixMillis,
    store::{ObjectKind, ObjectRefusal, Store, StoreError},
};
pub use changes::{NewUser, OwnChange, UserChange};
pub use logins::{LoginRequest, NewSession};
pub use sessions::SessionAnswer;

/// The users and sessions. Clones are cheap.
#[derive(Debug, Clone)]
pub struct KnownPeople(Arc<SharedPeople>);

#[derive(Debug)]
struct SharedPeople {
    user_records: Records<UserRecord>,
    session_records: Records<SessionRecord>,
    users: LiveValue<BTreeMap<String, Arc<User>>>,
    sessions: RwLock<SessionSet>,
    /// The digest of the provider's rules; `None` without a provider.
    provider_rules: RwLock<Option<Digest>>,
    /// The password that is checked for unknown users, so that they take the same time.
    nobody: Password,
    /// Changes hold this lock.
    change_lock: Mutex<()>,
}

/// The reason why a login or a change is refused.
#[derive(Debug, thiserror::Error)]
pub enum PeopleFault {
    /// The request is invalid, or the store refuses it.
    #[error(transparent)]
    Object(#[from] ObjectFault),
    /// The user exists.
    #[error("a user {0:?} exists")]
    Exists(String),
    /// The caller lacks a right.
    #[error("{0}")]
    Forbidden(String),
    /// The user, the password or the code is wrong.
    #[error("the user, the password or the code is wrong")]
    WrongLogin,
    /// The password is right, and the user has a second factor.
    #[error("the user has a second factor: send its code as well")]
    CodeRequired,
    /// The code of the second factor is wrong, or was used before.
    #[error("the code is wrong or was used before; wait for the next one")]
    WrongCode,
    /// An administrator disabled the user, whom a provider identified.
    #[error("an administrator of Granary disabled this user")]
    Disabled,
    /// The session has ended.
    #[error("the session has ended: log in again")]
    NoSession,
    /// The second factor is on, or no secret was requested.
    #[error("{0}")]
    SecondFactor(&'static str),
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    Random(#[from] io::Error),
}

impl From<StoreError> for PeopleFault {
    fn from(cause: StoreError) -> Self {
        Self::Object(cause.into())
    }
}

impl From<ObjectRefusal> for PeopleFault {
    fn from(cause: ObjectRefusal) -> Self {
        Self::Object(cause.into())
    }
}

/// A user in an answer. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UserAnswer {
    name: String,
    /// The name that the provider sent; empty for the daemon's own users.
    display_name: String,
    roles: Roles,
    /// True for a user with a second factor.
    totp: bool,
    /// True for a user with a password.
    password: bool,
    disabled: bool,
    created: i64,
    created_by: String,
    last_login: Option<i64>,
    /// The number of sessions.
    sessions: usize,
}

impl KnownPeople {
    /// Loads the users and sessions of a store. The idle time of each session starts over.
    ///
    /// # Errors
    /// The store cannot be read, or the system has no random numbers.
    pub fn open(store: &Store, now: UnixMillis) -> Result<Self, PeopleFault> {
        let user_records = Records::<UserRecord>::new(store, ObjectKind::User);
        let user = |(name, record): (String, _)| (name.clone(), Arc::new(User { name, record }));
        let users: BTreeMap<_, _> = user_records.load()?.into_iter().map(user).collect();
        let session_records = Records::<SessionRecord>::new(store, ObjectKind::Session);
        let mut sessions = SessionSet::default();
        for (name, record) in session_records.load()?.into_iter().take(SESSIONS_MAX) {
            if let Some(id) = Digest::parse(&name) {
                sessions.insert(id, record, now);
            }
        }
        Ok(Self(Arc::new(SharedPeople {
            user_records,
            session_records,
            users: LiveValue::new(users),
            sessions: RwLock::new(sessions),
            provider_rules: RwLock::default(),
            nobody: Password::unknown()?,
            change_lock: Mutex::default(),
        })))
    }

    /// Returns the caller with a cookie's session, and notes the use of the session.
    pub fn check(&self, cookie: &[u8], now: UnixMillis) -> Option<UserCaller> {
        let id = session_id(cookie)?;
        let session = self.0.sessions.read().used(&id, now)?;
        let user = self.user_of(&session.record)?;
        Some(UserCaller::new(user, session, id))
    }

    /// Returns true if the session of an earlier check is still valid.
    pub fn is_valid(&self, caller: &UserCaller, now: UnixMillis) -> bool {
        self.valid_user(caller, now).is_some()
    }

    fn valid_user(&self, caller: &UserCaller, now: UnixMillis) -> Option<Arc<User>> {
        let session = self.0.sessions.read().current(caller.session_id(), now)?;
        self.user_of(&session.record)
    }

    /// Returns the user of a valid session.
    fn user_of(&self, session: &SessionRecord) -> Option<Arc<User>> {
        let user = self.0.users.get().get(&session.user).cloned()?;
        let record = &user.record;
        let is_current = record.provider.as_ref().is_none_or(|provider| {
            let rules = *self.0.provider_rules.read();
            rules == Some(provider.rules)
        });
        let is_valid = is_current && record.generation == session.generation && !record.disabled;
        is_valid.then_some(user)
    }

    /// Returns the users whom a caller may manage, by name.
    pub fn list(&self, caller: Option<&Caller>, now: UnixMillis) -> Vec<UserAnswer> {
        let users = self.0.users.get();
        let is_shown = |user: &&Arc<User>| {
            caller.is_none_or(|caller| caller.may_manage(&user.record.roles).is_ok())
        };
        users.values().filter(is_shown).map(|user| self.answer(user, now)).collect()
    }

    /// Returns true if a user who can log in is an administrator of all projects.
    pub fn has_administrator(&self) -> bool {
        let users = self.0.users.get();
        let is_such = |user: &Arc<User>| {
            let UserRecord { roles, password, disabled, .. } = &user.record;
            !disabled && password.is_some() && roles.is_admin_of(ALL_PROJECTS)
        };
        users.values().any(is_such)
    }

    /// Returns true if there is a user with this name.
    pub fn has_user(&self, name: &str) -> bool {
        self.0.users.get().contains_key(name)
    }

    /// Returns the number of sessions, including ended ones that were not removed yet.
    pub fn session_count(&self) -> usize {
        self.0.sessions.read().len()
    }

    fn answer(&self, user: &User, now: UnixMillis) -> UserAnswer {
        let record = &user.record;
        let sessions = self.0.sessions.read();
        let is_own =
            |session: &SessionRecord| session.user == user.name && self.user_of(session).is_some();
        let sessions = sessions.all(now).filter(|(_, session)| is_own(&session.record)).count();
        UserAnswer {
            name: user.name.clone(),
            display_name: record.display_name().to_owned(),
            roles: record.roles.clone(),
            totp: record.requires_code(),
            password: record.password.is_some(),
            disabled: record.disabled,
            created: record.created,
            created_by: record.created_by.clone(),
            last_login: record.last_login,
            sessions,
        }
    }

    /// Stores a user, and replaces it for all readers. The caller holds the change lock.
    fn put(&self, user: User, now: UnixMillis) -> Result<Arc<User>, PeopleFault> {
        self.0.user_records.put(&user.name, &user.record, now)??;
        let mut users = BTreeMap::clone(&self.0.users.get());
        let user = Arc::new(user);
        users.insert(user.name.clone(), user.clone());
        self.0.users.set(users);
        Ok(user)
    }

    fn user(&self, name: &str) -> Result<Arc<User>, PeopleFault> {
        let found = self.0.users.get().get(name).cloned();
        found.ok_or_else(|| {
            let message = format!("there is no user {name:?}; `granary user list` shows the names");
            ObjectFault::NotFound(message).into()
        })
    }
}
