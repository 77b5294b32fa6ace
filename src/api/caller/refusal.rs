//! Requests that are refused because of their key or session.

use actix_web::{
    HttpResponse,
    http::{StatusCode, header},
};

use crate::{
    access::{FAILURES_MAX, KeyProject, Scopes},
    api::answer,
};

/// The header that names the project of a request.
pub(super) const PROJECT_HEADER: &str = "X-Scope-OrgID";

/// The reason why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AccessRefusal {
    /// The request has neither a key nor the cookie of a session.
    NoKey,
    /// The session of the cookie has ended, or never existed.
    NoSession,
    /// A change with a cookie lacks the text that only the daemon's own page knows.
    Csrf,
    /// The key is unknown, revoked or expired, or is not in the form of a key.
    Wrong,
    /// The one-time code is unknown, used or expired, or is not in the form of a code.
    WrongCode,
    /// The address sent many wrong keys in the last minute.
    TooManyWrong,
    /// The request has two different keys.
    Ambiguous,
    /// The key or the user lacks some of these scopes.
    Lacks {
        /// The scopes.
        scopes: Scopes,
        /// The kind of the caller, `key`, `user` or `client`.
        kind: &'static str,
        /// The name of the caller.
        name: String,
    },
    /// The header names a project that the key may not use.
    OtherProject {
        /// The project of the caller.
        own: KeyProject,
        /// The kind of the caller's credentials.
        kind: &'static str,
        /// The name of the caller.
        name: String,
    },
    /// The request needs a key of all projects.
    OneProject {
        /// The project of the caller.
        own: KeyProject,
        /// The kind of the caller's credentials.
        kind: &'static str,
        /// The name of the caller.
        name: String,
    },
    /// The settings have no project of this name, or the caller has no role in it.
    NoProject {
        /// The name of the project.
        project: String,
        /// The kind of the caller's credentials.
        kind: &'static str,
        /// The name of the caller.
        name: String,
    },
    /// The user of this name must set up a second factor before any other request.
    NeedsFactor(String),
    /// Too many changes wait for the audit.
    Busy,
    /// The keys are in a damaged file.
    Unread(String),
}

impl AccessRefusal {
    /// Returns the value of the label `reason`.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::NoKey | Self::Wrong | Self::TooManyWrong | Self::Ambiguous => "key",
            Self::WrongCode => "code",
            Self::NoSession => "session",
            Self::Csrf => "csrf",
            Self::Lacks { .. } => "scope",
            Self::NeedsFactor(_) => "second_factor",
            Self::OtherProject { .. } | Self::OneProject { .. } | Self::NoProject { .. } => {
                "project"
            }
            Self::Busy => "audit",
            Self::Unread(_) => "unread",
        }
    }

    /// Returns the status of the response.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NoKey | Self::NoSession | Self::Wrong | Self::WrongCode => {
                StatusCode::UNAUTHORIZED
            }
            Self::TooManyWrong => StatusCode::TOO_MANY_REQUESTS,
            Self::Ambiguous => StatusCode::BAD_REQUEST,
            Self::Csrf
            | Self::NeedsFactor(_)
            | Self::Lacks { .. }
            | Self::OtherProject { .. }
            | Self::OneProject { .. }
            | Self::NoProject { .. } => StatusCode::FORBIDDEN,
            Self::Busy | Self::Unread(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    pub(super) fn response(&self) -> HttpResponse {
        match self {
            Self::NoKey => unauthorized(
                "no_key",
                "this daemon requires a key: commands and agents read it from --key-file; others \
                 send `Authorization: Bearer gry_...`, the password of Basic, or ?api_key=; people \
                 log in on the page",
            ),
            Self::NoSession => {
                unauthorized("no_session", "the session has ended: log in again on the page")
            }
            Self::Csrf => {
                let message = "a change with the cookie of a session needs the header \
                               X-Granary-CSRF: read its value again from /api/v1/access/me";
                answer::error(StatusCode::FORBIDDEN, "csrf", message)
            }
            Self::Wrong => unauthorized(
                "wrong_key",
                "the key is not valid: it may be cut, revoked, replaced or expired; an \
                 administrator sees the keys with `granary key list`",
            ),
            Self::WrongCode => unauthorized(
                "wrong_code",
                "the code is not valid: it may be cut, used or expired; an administrator makes \
                 another one with `granary key code`",
            ),
            Self::TooManyWrong => {
                let message = format!(
                    "more than {FAILURES_MAX} requests with wrong keys or codes came from this \
                     address in a minute: correct the key"
                );
                answer::error(self.status(), "wrong_key", message)
            }
            Self::Ambiguous => answer::error(
                self.status(),
                "two_keys",
                "the request has several credentials: send one key, in one place",
            ),
            Self::NeedsFactor(_) => answer::error(
                self.status(),
                "second_factor_required",
                "your role needs a second factor: set it up in /profile on the page",
            ),
            Self::Busy => answer::error(
                self.status(),
                "busy",
                "too many changes wait for their records in the audit: repeat the request",
            ),
            Self::Lacks { scopes, .. } => {
                let message = format!("the caller lacks a scope: this request needs {scopes}");
                forbidden(&message)
            }
            Self::OtherProject { own, kind, .. } => other_project(own, kind),
            Self::OneProject { own, kind, .. } => one_project(own, kind),
            Self::NoProject { project, kind, .. } => no_project(project, kind),
            Self::Unread(file) => unread(file),
        }
    }
}

fn other_project(own: &KeyProject, kind: &str) -> HttpResponse {
    forbidden(&format!(
        "the {kind} belongs to the project {own}: leave out the header {PROJECT_HEADER}, or name \
         this project"
    ))
}

fn one_project(own: &KeyProject, kind: &str) -> HttpResponse {
    forbidden(&format!(
        "the {kind} belongs to the project {own}, and this request shows the state of all \
         projects: use a key of all projects (`granary key add --project '*'`)"
    ))
}

fn no_project(project: &str, kind: &str) -> HttpResponse {
    forbidden(&format!(
        "there is no project {project:?}, or the {kind} has no right in it: administrators add \
         projects to security.projects in the settings, and users with `granary user add`"
    ))
}

fn forbidden(message: &str) -> HttpResponse {
    answer::error(StatusCode::FORBIDDEN, "forbidden", message)
}

/// Refuses a request while the keys are in a damaged file. Senders keep their samples on a 503.
fn unread(file: &str) -> HttpResponse {
    let message = format!(
        "the keys cannot be read, because {file} is damaged: restore a snapshot, or remove \
         damaged/{file} from the data directory, restart the daemon and make new keys"
    );
    answer::error(StatusCode::SERVICE_UNAVAILABLE, "keys_unread", message)
}

/// The challenge is not `Basic`, which would open the browser's login dialog when the page sends
/// requests.
fn unauthorized(word: &str, message: &str) -> HttpResponse {
    let mut response = answer::error(StatusCode::UNAUTHORIZED, word, message);
    let challenge = header::HeaderValue::from_static("Bearer realm=\"granary\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}
