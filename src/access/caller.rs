//! The caller of a request: a key, or a user with a session.

use std::sync::Arc;

use super::{
    keys::KeyCaller,
    roles::{DEFAULT_PROJECT, Roles},
    scopes::{Scope, Scopes},
    sessions::Session,
    token::Digest,
    user::User,
};

/// The sender of a request with valid credentials.
#[derive(Debug, Clone)]
pub enum Caller {
    /// A program or a person with a key.
    Key(KeyCaller),
    /// A person who has logged in.
    User(UserCaller),
}

/// A user with a session, as of the check of the session.
#[derive(Debug, Clone)]
pub struct UserCaller {
    /// The user.
    pub user: Arc<User>,
    /// The session.
    pub session: Arc<Session>,
    pub(super) id: Digest,
}

impl UserCaller {
    /// Returns the caller with a session of a user.
    pub fn new(user: Arc<User>, session: Arc<Session>, id: Digest) -> Self {
        Self { user, session, id }
    }

    /// Returns the digest that identifies the session.
    pub fn session_id(&self) -> &Digest {
        &self.id
    }
}

impl Caller {
    /// Returns the kind of the credentials: `key` or `user`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Key(_) => "key",
            Self::User(_) => "user",
        }
    }

    /// Returns the name of the key or of the user.
    pub fn name(&self) -> &str {
        match self {
            Self::Key(caller) => &caller.key.record.name,
            Self::User(caller) => &caller.user.name,
        }
    }

    /// Returns the scopes, without those that they include.
    pub fn scopes(&self) -> Scopes {
        match self {
            Self::Key(caller) => caller.key.record.scopes,
            Self::User(caller) => caller.user.record.roles.scopes_in(DEFAULT_PROJECT),
        }
    }

    /// Returns the prefix of the senders' names that the caller may use; `None`: all.
    pub fn senders(&self) -> Option<&str> {
        match self {
            Self::Key(caller) => caller.key.record.senders.as_deref(),
            Self::User(_) => None,
        }
    }

    /// Returns the time at which the caller's key expires.
    pub fn expires(&self) -> Option<i64> {
        match self {
            Self::Key(caller) => caller.key.record.expires,
            Self::User(_) => None,
        }
    }

    /// Checks that a change of a key with these properties gives the caller nothing that it lacks.
    ///
    /// # Errors
    /// The key may do more than the caller; the text names the difference.
    pub fn may_grant(
        &self,
        scopes: Scopes,
        senders: Option<&str>,
        expires: Option<i64>,
    ) -> Result<(), String> {
        let (kind, name) = (self.kind(), self.name());
        if !self.scopes().granted().contains(scopes.granted()) {
            return Err(format!("the {kind} {name:?} lacks some of the scopes {scopes}"));
        }
        // Keys that were made without a caller, such as the first one, may make the lasting ones.
        let end = match self {
            Self::Key(caller) if caller.key.record.created_by.is_empty() => None,
            Self::Key(_) | Self::User(_) => self.expires(),
        };
        if end.is_some_and(|end| expires.is_none_or(|expires| expires > end)) {
            return Err(format!(
                "the key {name:?} expires, and a key that it makes or rotates must expire no later"
            ));
        }
        match self.senders() {
            Some(prefix) if !senders.is_some_and(|senders| senders.starts_with(prefix)) => {
                Err(format!("the key {name:?} is limited to senders {prefix}..."))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the caller has all rights of a user with these roles, so that it may make,
    /// change and remove this user.
    ///
    /// # Errors
    /// The roles include a right that the caller lacks; the text names the project.
    pub fn may_manage(&self, roles: &Roles) -> Result<(), String> {
        let operates = self.scopes().contains(Scopes::of(&[Scope::Admin, Scope::Operate]));
        let has = |project: &str| match self {
            _ if operates => true,
            Self::Key(caller) => {
                let is_admin = caller.key.record.scopes.contains(Scopes::of(&[Scope::Admin]));
                is_admin && project == DEFAULT_PROJECT
            }
            Self::User(caller) => caller.user.record.roles.is_admin_of(project),
        };
        match roles.projects().find(|project| !has(project)) {
            None => Ok(()),
            Some(project) => Err(format!(
                "the {} {:?} is no administrator of the project {project:?}",
                self.kind(),
                self.name()
            )),
        }
    }
}
