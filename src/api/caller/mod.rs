//! The caller of a request: the check of its key, around each route.
//!
//! Must never know: how a key is compared, which right a route requires, handlers.

mod credentials;
mod refusal;

use std::{
    net::{IpAddr, Ipv4Addr},
    rc::Rc,
    sync::Arc,
};

use actix_web::{
    Error, HttpMessage, HttpRequest,
    body::{EitherBody, MessageBody},
    dev::{Extensions, RequestHead, ServiceRequest, ServiceResponse},
    http::{
        StatusCode,
        header::{self, HeaderValue},
    },
    middleware::Next,
};
use parking_lot::Mutex;

use super::body::Bodies;
use crate::{
    access::{Caller, Denial, FAILURES_MAX, FailedKeys, KeyProject, Right, admit},
    clock::TrustedClock,
    kept::KnownKeys,
    model::{DEFAULT_PROJECT, PROJECT_NAME_BYTES_MAX, ProjectName},
    telemetry::Metrics,
};
use refusal::{AccessRefusal, PROJECT_HEADER};

/// The parts of access control. Clones are cheap.
#[derive(Debug, Clone)]
pub struct AccessParts {
    /// True when each request needs a key.
    pub is_on: bool,
    /// The projects of the settings, the first of them `default`.
    pub projects: Arc<[ProjectName]>,
    /// The warning about addresses that others can use without a key.
    pub exposure: Option<Arc<str>>,
    /// The keys.
    pub keys: KnownKeys,
    /// The clock, by which keys expire.
    pub clock: TrustedClock,
    /// The metrics.
    pub metrics: Metrics,
    /// The limits of bodies.
    pub bodies: Bodies,
    failures: Arc<Mutex<FailedKeys>>,
}

/// The parts of a route's handler, by the index of the project.
pub(super) type PartsOfProjects = Rc<[Rc<Extensions>]>;

/// Returns the caller of a request; `None` without access control.
pub(super) fn caller(request: &HttpRequest) -> Option<Caller> {
    request.extensions().get::<Caller>().cloned()
}

impl AccessParts {
    /// Creates the parts.
    pub fn new(
        (is_on, projects): (bool, Arc<[ProjectName]>),
        exposure: Option<String>,
        keys: KnownKeys,
        clock: TrustedClock,
        metrics: Metrics,
        bodies: Bodies,
    ) -> Self {
        let (exposure, failures) = (exposure.map(Arc::from), Arc::default());
        Self { is_on, projects, exposure, keys, clock, metrics, bodies, failures }
    }

    /// Passes a request to its route with the parts of its project if its caller has the right, and
    /// answers it otherwise.
    pub(super) async fn check<B: MessageBody>(
        self,
        (right, parts): (Right, PartsOfProjects),
        mut request: ServiceRequest,
        next: Next<B>,
    ) -> Result<ServiceResponse<EitherBody<B>>, Error> {
        let address = request.peer_addr().map(|peer| peer.ip());
        let admitted = self.admit(right, request.head(), address).and_then(|caller| {
            let project = self.project(right, caller.as_ref(), request.head())?;
            Ok((caller, project))
        });
        match admitted {
            Ok((caller, project)) => {
                // The parts that are added last are those that a handler receives.
                if let Some(parts) = parts.get(project).filter(|_| project > 0) {
                    request.add_data_container(parts.clone());
                }
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
        match admit(right, scopes) {
            Ok(()) => Ok(caller),
            Err(Denial::Unknown) => Err(AccessRefusal::NoKey),
            Err(Denial::Lacks(scopes)) => Err(AccessRefusal::Lacks(scopes)),
        }
    }

    /// Returns the index of the project of a request. The state of the daemon belongs to none.
    fn project(
        &self,
        right: Right,
        caller: Option<&Caller>,
        head: &RequestHead,
    ) -> Result<usize, AccessRefusal> {
        let Some(caller) = caller else { return Ok(0) };
        let mut headers = head.headers.get_all(PROJECT_HEADER);
        let (header, second) = (headers.next(), headers.next());
        let header = header.map(|name| String::from_utf8_lossy(name.as_bytes()));
        let project: &str = match (caller.project(), &header) {
            _ if second.is_some() => return Err(AccessRefusal::Ambiguous),
            (KeyProject::One(own), None) => own.as_str(),
            (KeyProject::One(own), Some(named)) if *named == own.as_str() => own.as_str(),
            (own @ KeyProject::One(_), Some(_)) => {
                return Err(AccessRefusal::OtherProject(own.clone()));
            }
            (KeyProject::All, None) => DEFAULT_PROJECT,
            (KeyProject::All, Some(named)) => named,
        };
        let index = self.projects.iter().position(|known| known.as_str() == project);
        let shown = || project.chars().take(PROJECT_NAME_BYTES_MAX).collect();
        let index = index.ok_or_else(|| AccessRefusal::NoProject(shown()))?;
        let is_of_daemon = matches!(right, Right::Operate | Right::Control);
        Ok(if is_of_daemon { 0 } else { index })
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
