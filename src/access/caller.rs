//! The caller of a request: a key, a user with a session, or a client with a certificate.

use std::sync::Arc;

use super::{
    keys::KeyCaller,
    project::KeyProject,
    record::KeyRecord,
    roles::{ALL_PROJECTS, DEFAULT_PROJECT, Roles},
    scopes::{Scope, Scopes},
    sessions::Session,
    token::Digest,
    user::User,
};
use crate::model::{ProjectName, SenderLimit, UnixMillis};

/// The sender of a request with valid credentials.
#[derive(Debug, Clone)]
pub enum Caller {
    /// A program or a person with a key.
    Key(KeyCaller),
    /// A person who has logged in.
    User(UserCaller),
    /// A program with a certificate.
    Client(ClientCaller),
}

/// A client with a certificate, whose name has scopes.
#[derive(Debug, Clone)]
pub struct ClientCaller {
    /// The name.
    pub name: String,
    /// The scopes.
    pub scopes: Scopes,
    /// The end of the certificate's validity.
    pub expires: UnixMillis,
}

/// A user with a session, as of the check of the session.
#[derive(Debug, Clone)]
pub struct UserCaller {
    /// The user.
    pub user: Arc<User>,
    /// The session.
    pub session: Arc<Session>,
    /// The project of the request.
    pub project: ProjectName,
    pub(super) id: Digest,
}

impl UserCaller {
    /// Returns the caller with a session of a user.
    pub fn new(user: Arc<User>, session: Arc<Session>, id: Digest) -> Self {
        Self { user, session, project: ProjectName::default(), id }
    }

    /// Returns the digest that identifies the session.
    pub fn session_id(&self) -> &Digest {
        &self.id
    }
}

impl Caller {
    /// Returns the kind of the credentials: `key`, `user` or `client`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Key(_) => "key",
            Self::User(_) => "user",
            Self::Client(_) => "client",
        }
    }

    /// Returns the name of the key, of the user or of the client.
    pub fn name(&self) -> &str {
        match self {
            Self::Key(caller) => &caller.key.record.name,
            Self::User(caller) => &caller.user.name,
            Self::Client(caller) => &caller.name,
        }
    }

    /// Returns the scopes, without those that they include.
    pub fn scopes(&self) -> Scopes {
        match self {
            Self::Key(caller) => caller.key.record.scopes,
            Self::User(caller) => caller.user.record.roles.scopes_in(caller.project.as_str()),
            Self::Client(caller) => caller.scopes,
        }
    }

    /// Returns the projects whose keys and codes the caller may manage. A user acts in one project
    /// at a time.
    pub fn project(&self) -> KeyProject {
        match self {
            Self::Key(caller) => caller.key.record.project.clone(),
            Self::User(caller) if caller.user.record.roles.is_admin_of(ALL_PROJECTS) => {
                KeyProject::All
            }
            Self::User(caller) => KeyProject::One(caller.project.clone()),
            Self::Client(_) => KeyProject::default(),
        }
    }

    /// Returns true when the caller may have rights in a project.
    pub fn may_use(&self, project: &ProjectName) -> bool {
        match self {
            Self::Key(caller) => match &caller.key.record.project {
                KeyProject::All => true,
                KeyProject::One(own) => own == project,
            },
            Self::User(caller) => {
                caller.user.record.roles.scopes_in(project.as_str()) != Scopes::NONE
            }
            Self::Client(_) => project.is_default(),
        }
    }

    /// Returns true when the caller's rights include what belongs to all projects together. Clients
    /// with certificates have these rights if their scopes allow it, because the operator names
    /// them in the daemon's settings.
    pub fn sees_all_projects(&self) -> bool {
        match self {
            Self::Key(caller) => caller.key.record.project == KeyProject::All,
            Self::User(caller) => caller.user.record.roles.is_admin_of(ALL_PROJECTS),
            Self::Client(_) => true,
        }
    }

    /// Returns the limit of the senders' names that the caller may use; `None`: all.
    pub fn senders(&self) -> Option<SenderLimit> {
        match self {
            Self::Key(caller) => {
                let record = &caller.key.record;
                Some(SenderLimit::new(record.senders.as_deref()?, record.one_sender))
            }
            Self::User(_) | Self::Client(_) => None,
        }
    }

    /// Returns true when the holder of the caller's key should renew it.
    pub fn should_renew(&self, now: UnixMillis) -> bool {
        match self {
            Self::Key(caller) => caller.should_renew(now),
            Self::User(_) | Self::Client(_) => false,
        }
    }

    /// Returns the time at which the caller's key expires.
    pub fn expires(&self) -> Option<i64> {
        match self {
            Self::Key(caller) => caller.key.record.expires,
            Self::User(_) | Self::Client(_) => None,
        }
    }

    /// Checks that the caller may create or change a key with these properties: the key must have
    /// no right that the caller lacks.
    ///
    /// # Errors
    /// The key may do more than the caller; the text names the difference.
    pub fn may_grant(
        &self,
        scopes: Scopes,
        project: &KeyProject,
        senders: Option<&str>,
        expires: Option<i64>,
    ) -> Result<(), String> {
        let (kind, name) = (self.kind(), self.name());
        if !self.project().includes(project) {
            return Err(format!(
                "the {kind} {name:?} belongs to the project {}, and cannot give access to others",
                self.project()
            ));
        }
        if !self.scopes().granted().contains(scopes.granted()) {
            return Err(format!("the {kind} {name:?} lacks some of the scopes {scopes}"));
        }
        // A key that was made without a caller, such as the first key, may make keys that never
        // expire.
        let end = match self {
            Self::Key(caller) if caller.key.record.created_by.is_empty() => None,
            Self::Key(_) | Self::User(_) | Self::Client(_) => self.expires(),
        };
        if end.is_some_and(|end| expires.is_none_or(|expires| expires > end)) {
            return Err(format!(
                "the key {name:?} expires, and a key that it makes or rotates must expire no later"
            ));
        }
        match self.senders() {
            Some(limit) if !senders.is_some_and(|senders| limit.allows(senders)) => {
                Err(format!("the key {name:?} is limited to senders whose name {limit}"))
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
            _ if operates && self.sees_all_projects() => true,
            Self::Key(caller) => {
                let KeyRecord { scopes, project: own, .. } = &caller.key.record;
                let is_admin = scopes.contains(Scopes::of(&[Scope::Admin]));
                // An administrator of all projects operates the daemon, too.
                let project = project.parse().ok().filter(|named| *named != KeyProject::All);
                is_admin && project.is_some_and(|project| own.includes(&project))
            }
            Self::User(caller) => caller.user.record.roles.is_admin_of(project),
            Self::Client(caller) => {
                let is_admin = caller.scopes.contains(Scopes::of(&[Scope::Admin]));
                is_admin && project == DEFAULT_PROJECT
            }
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
