//! Requests that are refused because of their key or session.

use actix_web::{
    HttpResponse,
    http::{StatusCode, header},
};

use crate::{
    access::{FAILURES_MAX, Scopes},
    api::answer,
};

/// The reason why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AccessRefusal {
    /// The request has neither a key nor the cookie of a session.
    NoKey,
    /// The session of the cookie has ended, or never existed.
    NoSession,
    /// A change with a cookie lacks the text that only the daemon's own page knows.
    Csrf,
    /// The key is unknown, revoked or expired, or has another form.
    Wrong,
    /// The address sent many wrong keys in the last minute.
    TooManyWrong,
    /// The request has two different keys.
    Ambiguous,
    /// The key or the user lacks some of these scopes.
    Lacks(Scopes),
    /// The keys are in a damaged file.
    Unread(String),
}

impl AccessRefusal {
    /// Returns the value of the label `reason`.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::NoKey | Self::Wrong | Self::TooManyWrong | Self::Ambiguous => "key",
            Self::NoSession => "session",
            Self::Csrf => "csrf",
            Self::Lacks(_) => "scope",
            Self::Unread(_) => "unread",
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
            Self::TooManyWrong => {
                let message = format!(
                    "more than {FAILURES_MAX} requests with wrong keys came from this address \
                     in a minute: correct the key"
                );
                answer::error(StatusCode::TOO_MANY_REQUESTS, "wrong_key", message)
            }
            Self::Ambiguous => answer::error(
                StatusCode::BAD_REQUEST,
                "two_keys",
                "the request has several credentials: send one key, in one place",
            ),
            Self::Lacks(scopes) => {
                let message = format!("the caller lacks a scope: this request needs {scopes}");
                answer::error(StatusCode::FORBIDDEN, "forbidden", message)
            }
            // Senders keep their samples on a 503.
            Self::Unread(file) => {
                let message = format!(
                    "the keys cannot be read, because {file} is damaged: restore a snapshot, or \
                     remove damaged/{file} from the data directory, restart the daemon and make \
                     new keys"
                );
                answer::error(StatusCode::SERVICE_UNAVAILABLE, "keys_unread", message)
            }
        }
    }
}

/// A challenge to Basic would open the browser's dialog on the page's requests.
fn unauthorized(word: &str, message: &str) -> HttpResponse {
    let mut response = answer::error(StatusCode::UNAUTHORIZED, word, message);
    let challenge = header::HeaderValue::from_static("Bearer realm=\"granary\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}
