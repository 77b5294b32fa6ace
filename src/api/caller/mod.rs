//! The caller of a request: the check of its key, around each route, and the audit of changes.
//!
//! Must never know: how a key is compared, which right a route requires, handlers.

mod audited;
mod credentials;
mod refusal;

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
        header::{self, HeaderName, HeaderValue},
    },
    middleware::Next,
};
use parking_lot::Mutex;

use granary_protocol::RENEW_KEY_HEADER;

use super::body::Bodies;
use crate::{
    access::{Caller, Denial, FAILURES_MAX, FailedKeys, Right, Row, admit},
    clock::TrustedClock,
    kept::{Audit, KnownCodes, KnownKeys},
    telemetry::Metrics,
};
pub(super) use audited::{note_caller, note_object};
use refusal::AccessRefusal;

/// The header of responses to a key that its holder should renew.
const RENEW_KEY: HeaderName = HeaderName::from_static(RENEW_KEY_HEADER);

/// The parts of access control. Clones are cheap.
#[derive(Debug, Clone)]
pub struct AccessParts {
    /// True when each request needs a key.
    pub is_on: bool,
    /// The warning about addresses that others can use without a key.
    pub exposure: Option<Arc<str>>,
    /// The keys.
    pub keys: KnownKeys,
    /// The one-time codes.
    pub codes: KnownCodes,
    /// The audit.
    pub audit: Audit,
    /// The clock, by which keys expire.
    pub clock: TrustedClock,
    /// The metrics.
    pub metrics: Metrics,
    /// The limits of bodies.
    pub bodies: Bodies,
    /// The failed keys and codes by address.
    pub failures: KeyFailures,
}

/// The failed keys and codes by address. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct KeyFailures(Arc<Mutex<FailedKeys>>);

/// Returns the name of a request's caller, if it has one.
pub(super) fn caller_name(request: &HttpRequest) -> Option<String> {
    caller(request).map(|caller| caller.name().to_owned())
}

/// Returns the caller of a request; `None` without access control.
pub(super) fn caller(request: &HttpRequest) -> Option<Caller> {
    request.extensions().get::<Caller>().cloned()
}

impl AccessParts {
    /// Passes a request to its route if its caller has the right, and answers it otherwise. The
    /// audit records changes.
    pub(super) async fn check<B: MessageBody>(
        self,
        row: &'static Row,
        mut request: ServiceRequest,
        next: Next<B>,
    ) -> Result<ServiceResponse<EitherBody<B>>, Error> {
        let address = request.peer_addr().map(|peer| peer.ip());
        let admitted = match self.is_on {
            true => self.admit(row.right, request.head(), address),
            false => Ok(None),
        };
        let caller = match admitted {
            Ok(caller) => caller,
            Err(refusal) => return Ok(self.refuse(row, request, &refusal)),
        };
        let mut place = None;
        if audited::is_change(row, request.method()) {
            place = self.audit.take_place();
            if place.is_none() {
                return Ok(self.refuse(row, request, &AccessRefusal::Busy));
            }
        }
        if let Some(caller) = &caller {
            request.extensions_mut().insert(caller.clone());
        }
        credentials::remove_from_address(request.head_mut());
        let mut response = next.call(request).await?;
        if caller.as_ref().is_some_and(|caller| caller.should_renew(self.clock.now())) {
            response.headers_mut().insert(RENEW_KEY, HeaderValue::from_static("1"));
        }
        if let Some(place) = place {
            audited::record_change(&self, row, caller.as_ref(), &response, place).await;
        }
        Ok(response.map_into_left_body())
    }

    fn refuse<B: MessageBody>(
        &self,
        row: &Row,
        request: ServiceRequest,
        refusal: &AccessRefusal,
    ) -> ServiceResponse<EitherBody<B>> {
        let address = request.peer_addr().map(|peer| peer.ip());
        self.count_refusal(refusal, request.head(), address);
        let mut response = refusal.response();
        // collectd sends its password only after this challenge. The page sends no samples, so no
        // browser opens a dialog.
        if row.right == Right::Ingest && response.status() == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Basic realm=\"granary\"");
            response.headers_mut().append(header::WWW_AUTHENTICATE, challenge);
        }
        request.into_response(response).map_into_right_body()
    }

    fn count_refusal(&self, refusal: &AccessRefusal, head: &RequestHead, address: Option<IpAddr>) {
        self.metrics.requests_refused.with_label_values(&[refusal.reason()]).inc();
        audited::note_refusal(self, refusal, head, address, self.clock.now());
    }

    /// Returns true when a request to an open route may also see the state of the daemon.
    pub(super) fn shows_state(&self, request: &HttpRequest) -> bool {
        let address = request.peer_addr().map(|peer| peer.ip());
        !self.is_on || self.admit(Right::Operate, request.head(), address).is_ok()
    }

    /// Returns true while the caller of a stream, such as a tail, may go on: its key was neither
    /// revoked nor replaced, and has not expired.
    pub(super) fn still_admits(&self, caller: Option<&Caller>) -> bool {
        let is_valid = |caller| self.keys.current().is_valid(caller, self.clock.now());
        caller.map_or(!self.is_on, is_valid)
    }

    fn admit(
        &self,
        right: Right,
        head: &RequestHead,
        address: Option<IpAddr>,
    ) -> Result<Option<Caller>, AccessRefusal> {
        if right == Right::Open {
            return Ok(None);
        }
        if let Some(file) = self.keys.unread() {
            return Err(AccessRefusal::Unread(file.to_owned()));
        }
        let sent = credentials::read(head, right == Right::Ingest)?;
        let now = self.clock.now();
        let caller = match &sent {
            None => None,
            Some(sent) => match self.keys.current().check(sent.text(), now) {
                Ok(caller) => Some(caller),
                Err(_) => return Err(self.count_failure(head, address)),
            },
        };
        let scopes = caller.as_ref().map(|caller| caller.key.record.scopes);
        let name = || caller.as_ref().map(Caller::name).unwrap_or_default().to_owned();
        match admit(right, scopes) {
            Ok(()) => Ok(caller),
            Err(Denial::Unknown) => Err(AccessRefusal::NoKey),
            Err(Denial::Lacks(scopes)) => Err(AccessRefusal::Lacks { scopes, name: name() }),
        }
    }

    /// Refuses a request while the keys and codes cannot be read.
    pub(super) fn refuse_unread(&self) -> Option<HttpResponse> {
        let file = self.keys.unread()?;
        self.metrics.requests_refused.with_label_values(&["unread"]).inc();
        Some(AccessRefusal::Unread(file.to_owned()).response())
    }

    /// Refuses a request whose one-time code is not valid; it counts as a wrong key.
    pub(super) fn refuse_code(&self, request: &HttpRequest) -> HttpResponse {
        let address = request.peer_addr().map(|peer| peer.ip());
        let refusal = match self.count_failure(request.head(), address) {
            AccessRefusal::Wrong => AccessRefusal::WrongCode,
            other => other,
        };
        self.count_refusal(&refusal, request.head(), address);
        refusal.response()
    }

    /// Counts a wrong key or code by address; logs the first of each minute.
    fn count_failure(&self, head: &RequestHead, address: Option<IpAddr>) -> AccessRefusal {
        let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let count = self.failures.0.lock().count(address, self.clock.now());
        if count == 1 {
            let path = head.uri.path();
            tracing::warn!(%address, path, "refused a request: its key or code is wrong");
        }
        if count > FAILURES_MAX { AccessRefusal::TooManyWrong } else { AccessRefusal::Wrong }
    }
}
