//! The caller of a request: the check of its key or of its session, around each route.
//!
//! Must never know: how a key or a session is compared, which right a route requires, handlers.

mod attempts;
mod credentials;
mod refusal;
mod session;

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use actix_web::{
    Error, HttpMessage, HttpRequest, HttpResponse,
    body::{EitherBody, MessageBody},
    dev::{RequestHead, ServiceRequest, ServiceResponse},
    http::{
        StatusCode,
        header::{self, HeaderValue},
    },
    middleware::Next,
};
use parking_lot::Mutex;

use super::body::Bodies;
use crate::{
    access::{Caller, Denial, FAILURES_MAX, FailedKeys, Right, UserCaller, admit, csrf_of},
    clock::TrustedClock,
    kept::{KnownKeys, KnownPeople},
    telemetry::Metrics,
};
pub(super) use attempts::{Logins, Outcome, address};
use refusal::AccessRefusal;
pub(super) use session::set_cookie;

/// The parts of access control. Clones are cheap.
#[derive(Debug, Clone)]
pub struct AccessParts {
    /// True when each request needs a key or a session.
    pub is_on: bool,
    /// The warning about addresses that others can use without a key.
    pub exposure: Option<Arc<str>>,
    /// The keys.
    pub keys: KnownKeys,
    /// The users and their sessions.
    pub people: KnownPeople,
    /// The clock, by which keys and sessions expire.
    pub clock: TrustedClock,
    /// The metrics.
    pub metrics: Metrics,
    /// The limits of bodies.
    pub bodies: Bodies,
    /// The limits of logins.
    pub(super) logins: Logins,
    failures: Arc<Mutex<FailedKeys>>,
}

/// Returns the caller of a request; `None` without access control.
pub(super) fn caller(request: &HttpRequest) -> Option<Caller> {
    request.extensions().get::<Caller>().cloned()
}

impl AccessParts {
    /// Creates the parts.
    pub fn new(
        is_on: bool,
        exposure: Option<String>,
        keys: KnownKeys,
        people: KnownPeople,
        clock: TrustedClock,
        metrics: Metrics,
        bodies: Bodies,
    ) -> Self {
        let (exposure, failures) = (exposure.map(Arc::from), Arc::default());
        let logins = Logins::new(clock.clone(), metrics.clone());
        Self { is_on, exposure, keys, people, clock, metrics, bodies, logins, failures }
    }

    /// Passes a request to its route if its caller has the right, and answers it otherwise.
    pub(super) async fn check<B: MessageBody>(
        self,
        right: Right,
        mut request: ServiceRequest,
        next: Next<B>,
    ) -> Result<ServiceResponse<EitherBody<B>>, Error> {
        match self.admit(right, request.request()) {
            Ok(caller) => {
                if let Some(caller) = caller {
                    request.extensions_mut().insert(caller);
                }
                credentials::remove_from_address(request.head_mut());
                Ok(next.call(request).await?.map_into_left_body())
            }
            Err(refusal) => {
                self.metrics.requests_refused.with_label_values(&[refusal.reason()]).inc();
                let mut response = refusal.response();
                // collectd sends its password only after this challenge. The page sends no samples,
                // so no browser opens a dialog.
                if right == Right::Ingest && response.status() == StatusCode::UNAUTHORIZED {
                    let challenge = HeaderValue::from_static("Basic realm=\"granary\"");
                    response.headers_mut().append(header::WWW_AUTHENTICATE, challenge);
                }
                Ok(request.into_response(response).map_into_right_body())
            }
        }
    }

    /// Returns true when a request to an open route may also see the state of the daemon.
    pub(super) fn shows_state(&self, request: &HttpRequest) -> bool {
        !self.is_on || self.admit(Right::Operate, request).is_ok()
    }

    /// Returns true while the caller of a stream, such as a tail, may go on: its key was neither
    /// revoked nor replaced, and has not expired, or its session has not ended.
    pub(super) fn still_admits(&self, caller: Option<&Caller>) -> bool {
        let now = self.clock.now();
        match caller {
            None => !self.is_on,
            Some(Caller::Key(key)) => self.keys.current().is_valid(key, now),
            Some(Caller::User(user)) => self.people.is_valid(user, now),
        }
    }

    /// Returns the valid session of a request's cookie.
    pub(super) fn session(&self, request: &HttpRequest) -> Option<UserCaller> {
        self.people.check(session::cookie(request)?, self.clock.now())
    }

    /// Returns the text that changes with the cookie of a user's request must repeat.
    pub(super) fn csrf(&self, request: &HttpRequest, caller: &Caller) -> Option<String> {
        match caller {
            Caller::User(_) => Some(csrf_of(session::cookie(request)?).to_string()),
            Caller::Key(_) => None,
        }
    }

    /// Returns the refusal of all requests while keys and users are in a damaged file.
    pub(super) fn unread(&self) -> Option<HttpResponse> {
        let file = self.keys.unread()?;
        Some(AccessRefusal::Unread(file.to_owned()).response())
    }

    fn admit(&self, right: Right, request: &HttpRequest) -> Result<Option<Caller>, AccessRefusal> {
        if right == Right::Open {
            return Ok(None);
        }
        if let Some(file) = self.keys.unread() {
            return Err(AccessRefusal::Unread(file.to_owned()));
        }
        let caller = self.identify(right, request)?;
        match admit(right, caller.as_ref().map(Caller::scopes)) {
            Ok(()) => Ok(caller),
            Err(Denial::Unknown) => Err(AccessRefusal::NoKey),
            Err(Denial::Lacks(scopes)) => Err(AccessRefusal::Lacks(scopes)),
        }
    }

    /// Returns the caller with the request's key, or else with the session of its cookie.
    fn identify(
        &self,
        right: Right,
        request: &HttpRequest,
    ) -> Result<Option<Caller>, AccessRefusal> {
        let (head, now) = (request.head(), self.clock.now());
        if let Some(sent) = credentials::read(head, right == Right::Ingest)? {
            return match self.keys.current().check(sent.text(), now) {
                Ok(caller) => Ok(Some(Caller::Key(caller))),
                Err(_) => Err(self.count_failure(head, request.peer_addr().map(|peer| peer.ip()))),
            };
        }
        let Some(cookie) = session::cookie(request) else { return Ok(None) };
        let user = self.people.check(cookie, now).ok_or(AccessRefusal::NoSession)?;
        if !session::may_change(request, cookie) {
            return Err(AccessRefusal::Csrf);
        }
        Ok(Some(Caller::User(user)))
    }

    /// Counts a wrong key by address; logs the first of each minute.
    fn count_failure(&self, head: &RequestHead, address: Option<IpAddr>) -> AccessRefusal {
        let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let count = self.failures.lock().count(address, self.clock.now());
        if count == 1 {
            tracing::warn!(%address, path = head.uri.path(), "refused a request: its key is wrong");
        }
        if count > FAILURES_MAX { AccessRefusal::TooManyWrong } else { AccessRefusal::Wrong }
    }
}
