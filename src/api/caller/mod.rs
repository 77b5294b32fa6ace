//! The caller of a request: the check of its key, session or certificate, around each route, and
//! the audit of changes.
//!
//! Must never know: how keys and sessions are compared, which right a route requires, what handlers
//! do.

mod attempts;
mod audited;
mod credentials;
mod project;
mod provider_logins;
mod refusal;
mod session;

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    rc::Rc,
    sync::Arc,
};

use actix_web::{
    Error, HttpMessage, HttpRequest, HttpResponse,
    body::{EitherBody, MessageBody},
    dev::{Extensions, RequestHead, ServiceRequest, ServiceResponse},
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
    access::{
        Caller, ClientCaller, ClientScopes, Denial, FAILURES_MAX, FailedKeys, Right, Role,
        RouteRow, UserCaller, admit, csrf_of,
    },
    clock::TrustedClock,
    kept::{Audit, KnownCodes, KnownKeys, KnownPeople, LiveValue},
    model::{DEFAULT_PROJECT, ProjectName},
    telemetry::Metrics,
    tls::ClientCertificate,
};
pub use attempts::Logins;
pub(super) use attempts::{Outcome, Turn, address, sender_address};
pub(super) use audited::{note_caller, note_object};
pub(super) use provider_logins::AskFault;
pub use provider_logins::ProviderLogins;
use refusal::{AccessRefusal, PROJECT_HEADER};
pub(super) use session::{login_cookie, set_cookie, set_login_cookie};

/// The header of responses to a key that its holder should renew.
const RENEW_KEY: HeaderName = HeaderName::from_static(RENEW_KEY_HEADER);

/// The parts of access control. Clones are cheap.
#[derive(Debug, Clone)]
pub struct AccessParts {
    /// True when each request needs a key or a session.
    pub is_on: bool,
    /// The projects of the settings, the first of them `default`.
    pub projects: Arc<[ProjectName]>,
    /// The warnings about addresses that other machines can reach, by topic.
    pub exposure: LiveValue<BTreeMap<&'static str, String>>,
    /// The keys.
    pub keys: KnownKeys,
    /// The one-time codes.
    pub codes: KnownCodes,
    /// The audit.
    pub audit: Audit,
    /// The scopes of clients by the names in their certificates.
    pub clients: LiveValue<ClientScopes>,
    /// The users and their sessions.
    pub people: KnownPeople,
    /// The clock, by which keys and sessions expire.
    pub clock: TrustedClock,
    /// The metrics.
    pub metrics: Metrics,
    /// The limits of bodies.
    pub bodies: Bodies,
    /// The limits of logins.
    pub logins: Logins,
    /// The smallest role whose users need a second factor; larger roles need one, too.
    pub totp_role: LiveValue<Option<Role>>,
    /// The logins at a provider.
    pub provider_logins: ProviderLogins,
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

/// The parts that a route's handler receives, by the index of the project.
pub(super) type PartsOfProjects = Rc<[Rc<Extensions>]>;

/// Returns the caller of a request; `None` without access control.
pub(super) fn caller(request: &HttpRequest) -> Option<Caller> {
    request.extensions().get::<Caller>().cloned()
}

/// Returns the project of a request.
pub(super) fn project(request: &HttpRequest) -> ProjectName {
    request.extensions().get::<ProjectName>().cloned().unwrap_or_default()
}

/// Returns true when a request names another project than `default`; without access control, the
/// header has no meaning.
pub(super) fn names_other_project(request: &HttpRequest) -> bool {
    let mut named = request.headers().get_all(PROJECT_HEADER);
    caller(request).is_some() && named.any(|name| name.as_bytes() != DEFAULT_PROJECT.as_bytes())
}

/// Returns the text that requests for changes must repeat when they are sent with this session's
/// cookie.
pub(super) fn csrf_text(request: &HttpRequest, caller: &Caller) -> Option<String> {
    match caller {
        Caller::User(_) => Some(csrf_of(session::cookie(request)?).to_string()),
        Caller::Key(_) | Caller::Client(_) => None,
    }
}

impl AccessParts {
    /// Passes a request to its route with the parts of its project if its caller has the right, and
    /// answers it otherwise. The audit records changes.
    pub(super) async fn check<B: MessageBody>(
        self,
        (row, parts): (&'static RouteRow, PartsOfProjects),
        mut request: ServiceRequest,
        next: Next<B>,
    ) -> Result<ServiceResponse<EitherBody<B>>, Error> {
        let admitted =
            if self.is_on { self.admit(row.right, request.request()) } else { Ok((None, 0)) };
        let (caller, project) = match admitted {
            Ok(admitted) => admitted,
            Err(refusal) => return Ok(self.refuse(row, request, &refusal)),
        };
        let mut permit = None;
        if audited::is_change(row, request.method()) {
            permit = self.audit.reserve();
            if permit.is_none() {
                return Ok(self.refuse(row, request, &AccessRefusal::Busy));
            }
        }
        if let Some(caller) = &caller {
            request.extensions_mut().insert(caller.clone());
            request.extensions_mut().insert(self.projects[project].clone());
        }
        // A handler receives the parts that were added last.
        if let Some(parts) = parts.get(project).filter(|_| project > 0) {
            request.add_data_container(parts.clone());
        }
        credentials::remove_from_address(request.head_mut());
        let mut response = next.call(request).await?;
        if caller.as_ref().is_some_and(|caller| caller.should_renew(self.clock.now())) {
            response.headers_mut().insert(RENEW_KEY, HeaderValue::from_static("1"));
        }
        if let Some(permit) = permit {
            audited::record_change(&self, row, caller.as_ref(), &response, permit).await;
        }
        Ok(response.map_into_left_body())
    }

    fn refuse<B: MessageBody>(
        &self,
        row: &RouteRow,
        request: ServiceRequest,
        refusal: &AccessRefusal,
    ) -> ServiceResponse<EitherBody<B>> {
        let from = address(request.request());
        self.count_refusal(refusal, request.head(), Some(from));
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
        !self.is_on || self.admit(Right::Operate, request).is_ok()
    }

    /// Returns true while the caller of a stream, such as a tail, may continue: its key was neither
    /// revoked nor replaced, and has not expired, or its session has not ended.
    pub(super) fn still_admits(&self, caller: Option<&Caller>) -> bool {
        let now = self.clock.now();
        match caller {
            None => !self.is_on,
            Some(Caller::Key(key)) => self.keys.current().is_valid(key, now),
            Some(Caller::User(user)) => self.people.is_valid(user, now) && !self.lacks_factor(user),
            Some(Caller::Client(client)) => {
                let names = std::slice::from_ref(&client.name);
                let scopes = self.clients.get().find(names).map(|(_, scopes)| scopes);
                now < client.expires && scopes == Some(client.scopes)
            }
        }
    }

    /// Returns true for a user who must set up a second factor before any other request.
    pub(super) fn lacks_factor(&self, caller: &UserCaller) -> bool {
        let record = &caller.user.record;
        let is_asked =
            self.totp_role.get().is_some_and(|least| record.roles.largest() >= Some(least));
        // Users of a provider use the second factor of their provider.
        is_asked && record.password.is_some() && !record.requires_code()
    }

    /// Returns the valid session of a request's cookie.
    pub(super) fn session(&self, request: &HttpRequest) -> Option<UserCaller> {
        self.people.check(session::cookie(request)?, self.clock.now())
    }

    /// Returns the refusal of all requests while keys and users are in a damaged file.
    pub(super) fn unread(&self) -> Option<HttpResponse> {
        let file = self.keys.unread()?;
        Some(AccessRefusal::Unread(file.to_owned()).response())
    }

    /// Returns the caller of a request, and the index of its project.
    fn admit(
        &self,
        right: Right,
        request: &HttpRequest,
    ) -> Result<(Option<Caller>, usize), AccessRefusal> {
        if right == Right::Open {
            return Ok((None, 0));
        }
        if let Some(file) = self.keys.unread() {
            return Err(AccessRefusal::Unread(file.to_owned()));
        }
        let mut caller = self.identify(right, request)?;
        let project = match &mut caller {
            Some(caller) => self.choose_project(right, caller, request.head())?,
            None => 0,
        };
        if let Some(Caller::User(user)) = &caller
            && right != Right::Own
            && self.lacks_factor(user)
        {
            return Err(AccessRefusal::NeedsFactor(user.user.name.clone()));
        }
        let kind = || caller.as_ref().map_or("key", Caller::kind);
        let name = || caller.as_ref().map(Caller::name).unwrap_or_default().to_owned();
        match admit(right, caller.as_ref().map(Caller::scopes)) {
            Ok(()) => Ok((caller, project)),
            Err(Denial::Unknown) => Err(AccessRefusal::NoKey),
            Err(Denial::Lacks(scopes)) => {
                Err(AccessRefusal::Lacks { scopes, kind: kind(), name: name() })
            }
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
                Err(_) => Err(self.count_failure(head, Some(address(request)))),
            };
        }
        let Some(cookie) = session::cookie(request) else { return Ok(self.client(request)) };
        let user = self.people.check(cookie, now).ok_or(AccessRefusal::NoSession)?;
        user.session.note_address(address(request));
        if !session::may_change(request, cookie) {
            return Err(AccessRefusal::Csrf);
        }
        Ok(Some(Caller::User(user)))
    }

    /// Returns the caller with the certificate of the request's connection, if a name has scopes.
    fn client(&self, request: &HttpRequest) -> Option<Caller> {
        let certificate = request.conn_data::<ClientCertificate>()?;
        let (clients, expires) = (self.clients.get(), certificate.expires);
        let (name, scopes) = clients.find(&certificate.names)?;
        let client = ClientCaller { name: name.clone(), scopes, expires };
        (self.clock.now() < expires).then_some(Caller::Client(client))
    }

    /// Refuses a request whose one-time code is not valid; it counts as a wrong key.
    pub(super) fn refuse_code(&self, request: &HttpRequest) -> HttpResponse {
        let from = Some(address(request));
        let mut refusal = self.count_failure(request.head(), from);
        if refusal == AccessRefusal::Wrong {
            refusal = AccessRefusal::WrongCode;
        }
        self.count_refusal(&refusal, request.head(), from);
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
