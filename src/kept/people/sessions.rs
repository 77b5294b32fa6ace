//! The sessions of a user, as the user sees and ends them.

use std::{cmp::Reverse, net::IpAddr, sync::Arc};

use serde::Serialize;

use super::{KnownPeople, PeopleFault, UserChange};
use crate::{
    access::{Digest, Session, UserCaller},
    kept::ObjectFault,
    model::UnixMillis,
};

/// A session in an answer. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionAnswer {
    /// The digest of the cookie, from which nobody can compute the cookie.
    id: Digest,
    created: i64,
    /// The time of the last request, or the start of the daemon.
    used: i64,
    /// The latest end.
    expires: i64,
    /// The address of the last request since the daemon started.
    address: Option<IpAddr>,
    /// True for the session of the request.
    is_current: bool,
}

impl KnownPeople {
    /// Returns the sessions of a caller's user, the one that was used last first.
    pub fn sessions_of(&self, caller: &UserCaller, now: UnixMillis) -> Vec<SessionAnswer> {
        let Some(user) = self.valid_user(caller, now) else { return Vec::new() };
        let sessions = self.0.sessions.read();
        let own = sessions.all(now).filter(|(_, session)| {
            let record = &session.record;
            record.user == user.name && self.user_of(record).is_some()
        });
        let answer = |(id, session): (&Digest, &Arc<Session>)| SessionAnswer {
            id: *id,
            created: session.record.created,
            used: session.used(),
            expires: session.expires(),
            address: session.address(),
            is_current: id == caller.session_id(),
        };
        let mut answers: Vec<_> = own.map(answer).collect();
        answers.sort_by_key(|session| Reverse((session.used, session.created)));
        answers
    }

    /// Ends one session of a caller's user, durably.
    ///
    /// # Errors
    /// The user has no such session, or the store cannot be written.
    pub fn end_one(
        &self,
        caller: &UserCaller,
        id: &str,
        now: UnixMillis,
    ) -> Result<(), PeopleFault> {
        let _change_lock = self.0.change_lock.lock();
        let user = self.valid_user(caller, now).ok_or(PeopleFault::NoSession)?;
        let own = Digest::parse(id).filter(|id| {
            let session = self.0.sessions.read().current(id, now);
            session.is_some_and(|session| session.record.user == user.name)
        });
        let unknown = || ObjectFault::NotFound("you have no such session".to_owned());
        self.end_session(&own.ok_or_else(unknown)?)
    }

    /// Ends all sessions of a caller's user, durably.
    ///
    /// # Errors
    /// The session has ended, or the store cannot be written.
    pub fn end_all(&self, caller: &UserCaller, now: UnixMillis) -> Result<(), PeopleFault> {
        self.valid_user(caller, now).ok_or(PeopleFault::NoSession)?;
        // Each change, even an empty one, gives the user another generation, which ends all
        // sessions.
        self.change(&caller.user.name, UserChange::default(), None, now).map(drop)
    }
}
