//! Logins: the check of a password and of a code, and the session that begins.

use std::sync::Arc;

use super::{KnownPeople, PeopleFault};
use crate::{
    access::{
        Digest, SecondFactor, Session, SessionRecord, SessionToken, User, UserCaller, csrf_of,
        user_name,
    },
    model::{UnixMillis, with_causes},
};

/// The texts that a person enters to log in.
#[derive(Clone, Copy)]
pub struct LoginRequest<'a> {
    /// The name of the user.
    pub user: &'a str,
    /// The password.
    pub password: &'a str,
    /// The code of the second factor.
    pub code: Option<&'a str>,
}

/// A session that has begun, with the text of its cookie.
#[derive(Debug)]
pub struct NewSession {
    /// The text of the cookie.
    pub token: SessionToken,
    /// The caller with this session.
    pub caller: UserCaller,
}

impl NewSession {
    /// Returns the text that each change with the cookie must repeat in a header.
    pub fn csrf(&self) -> Digest {
        csrf_of(self.token.reveal().as_bytes())
    }
}

impl KnownPeople {
    /// Logs a user in, durably; takes as long for unknown users as for a wrong password.
    ///
    /// # Errors
    /// The user, the password or the code is wrong, a code is required, or the store cannot be
    /// written.
    pub fn log_in(
        &self,
        request: LoginRequest<'_>,
        now: UnixMillis,
    ) -> Result<NewSession, PeopleFault> {
        let LoginRequest { user, password, code } = request;
        let user = self.check_password(user, password).ok_or(PeopleFault::WrongLogin)?;
        let _change_lock = self.0.change_lock.lock();
        let current = self.user(&user.name).map_err(|_| PeopleFault::WrongLogin)?;
        // The user may have been changed while the password was checked.
        if current.record.generation != user.record.generation || current.record.disabled {
            return Err(PeopleFault::WrongLogin);
        }
        let mut record = current.record.clone();
        if let Some(factor) = record.totp.as_mut().filter(|factor| factor.is_confirmed()) {
            let code = code.ok_or(PeopleFault::CodeRequired)?;
            if !SecondFactor::accept(factor, code, now) {
                return Err(PeopleFault::WrongLogin);
            }
        }
        record.last_login = Some(now.0);
        let user = self.put(User { name: current.name.clone(), record }, now)?;
        self.begin_session(user, now)
    }

    /// Returns the user with a name and a password, if the user may log in.
    pub fn check_password(&self, user: &str, password: &str) -> Option<Arc<User>> {
        let user = self.0.users.get().get(&user_name(user)).cloned();
        let known = user.as_ref().and_then(|user| user.record.password.as_ref());
        let is_right = known.unwrap_or(&self.0.nobody).is(password) && known.is_some();
        user.filter(|user| is_right && !user.record.disabled)
    }

    /// Ends a session, durably.
    ///
    /// # Errors
    /// The store cannot be written. The session has ended nevertheless, but is valid again after
    /// the next start.
    pub fn log_out(&self, caller: &UserCaller) -> Result<(), PeopleFault> {
        let _change_lock = self.0.change_lock.lock();
        self.end_session(caller.session_id())
    }

    pub(super) fn end_session(&self, id: &Digest) -> Result<(), PeopleFault> {
        self.0.sessions.write().remove(id);
        Ok(self.0.session_records.remove(&id.to_string())??)
    }

    /// Begins a session, durably. The caller holds the change lock.
    pub(super) fn begin_session(
        &self,
        user: Arc<User>,
        now: UnixMillis,
    ) -> Result<NewSession, PeopleFault> {
        let is_valid = |record: &SessionRecord| self.user_of(record).is_some();
        let excess = self.0.sessions.read().excess(&user.name, now, is_valid);
        for id in excess {
            if let Err(cause) = self.end_session(&id) {
                tracing::error!(cause = with_causes(&cause), "cannot remove an ended session");
            }
        }
        let token = SessionToken::random()?;
        let id = token.id();
        let record = SessionRecord {
            user: user.name.clone(),
            created: now.0,
            generation: user.record.generation,
        };
        self.0.session_records.put(&id.to_string(), &record, now)??;
        let session: Arc<Session> = self.0.sessions.write().insert(id, record, now);
        Ok(NewSession { token, caller: UserCaller::new(user, session, id) })
    }
}
