//! The limits of logins: two passwords are hashed at a time, and logins are delayed after wrong
//! passwords.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        StatusCode,
        header::{self, HeaderName},
    },
    web,
};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    access::{Attempt, Lockout, TrustedProxies},
    api::answer,
    clock::TrustedClock,
    cluster::ClusterControl,
    kept::LiveValue,
    telemetry::Metrics,
};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The number of passwords that are hashed at the same time, each with 19 MiB.
const HASHES_AT_ONCE: usize = 2;
/// The number of requests that wait for their turn.
const WAITING_MAX: usize = 64;

/// The limits of logins. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Logins {
    hashing: Arc<Semaphore>,
    permits: Arc<Semaphore>,
    lockout: Arc<Mutex<Lockout>>,
    clock: TrustedClock,
    metrics: Metrics,
}

/// A turn to hash a password, which ends when it is dropped.
pub(in crate::api) struct Turn {
    _hashing: OwnedSemaphorePermit,
    _permit: OwnedSemaphorePermit,
}

/// The result of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum Outcome {
    Right,
    Wrong,
    /// The password was not checked, or was right but the login was refused for another reason.
    Neither,
}

/// The result of work that checked a password.
pub(in crate::api) struct Checked<T> {
    pub(in crate::api) result: T,
    pub(in crate::api) outcome: Outcome,
    /// True when no other wrong login of the address is remembered.
    pub(in crate::api) is_first: bool,
}

impl Logins {
    /// Creates the limits.
    pub fn new(clock: TrustedClock, metrics: Metrics) -> Self {
        Self {
            hashing: Arc::new(Semaphore::new(HASHES_AT_ONCE)),
            permits: Arc::new(Semaphore::new(HASHES_AT_ONCE + WAITING_MAX)),
            lockout: Arc::default(),
            clock,
            metrics,
        }
    }

    /// Waits for the turn to hash a password; refuses when many others wait.
    pub(in crate::api) async fn turn(&self) -> Result<Turn, HttpResponse> {
        let busy = || {
            self.count("busy");
            let message = "many people log in at this moment: retry in a few seconds";
            let mut response = answer::error(StatusCode::TOO_MANY_REQUESTS, "busy", message);
            let seconds = header::HeaderValue::from_static("5");
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
            response
        };
        let permit = self.permits.clone().try_acquire_owned().map_err(|_| busy())?;
        let hashing = self.hashing.clone().acquire_owned().await.map_err(|_| busy())?;
        Ok(Turn { _hashing: hashing, _permit: permit })
    }

    /// Runs work that checks a password of a user, outside of the HTTP worker. The work drops its
    /// turn when the password is checked. `outcome_of` derives the outcome from the result of the
    /// work.
    ///
    /// # Errors
    /// The response to a login that must wait, or that failed.
    pub(in crate::api) async fn check<T: Send + 'static>(
        &self,
        request: &HttpRequest,
        user: &str,
        work: impl FnOnce(Turn) -> T + Send + 'static,
        outcome_of: impl FnOnce(&T) -> Outcome,
    ) -> Result<Checked<T>, HttpResponse> {
        let begun = self.begin(request, user);
        let attempt = begun.inspect_err(|_| self.count("delayed")).map_err(delayed)?;
        let turn = self.turn().await.inspect_err(|_| self.end(&attempt, Outcome::Neither))?;
        let done = web::block(move || work(turn)).await;
        let outcome = done.as_ref().map_or(Outcome::Neither, outcome_of);
        self.end(&attempt, outcome);
        match done {
            Ok(result) => Ok(Checked { result, outcome, is_first: attempt.is_first }),
            Err(cause) => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                Err(answer::error(status, "failed", cause.to_string()))
            }
        }
    }

    /// Begins a login, which counts as wrong until its outcome is noted.
    ///
    /// # Errors
    /// The login must wait; the error is the time in milliseconds.
    pub(in crate::api) fn begin(&self, request: &HttpRequest, user: &str) -> Result<Attempt, i64> {
        self.lockout.lock().begin(user, address(request), self.clock.now())
    }

    /// Notes the outcome of a login, on which the delay of the next logins depends.
    pub(in crate::api) fn note(&self, attempt: &Attempt, outcome: Outcome) {
        match outcome {
            Outcome::Right => self.lockout.lock().succeed(attempt),
            Outcome::Neither => self.lockout.lock().undo(attempt),
            Outcome::Wrong => {}
        }
    }

    fn end(&self, attempt: &Attempt, outcome: Outcome) {
        match outcome {
            Outcome::Right => self.count("right"),
            Outcome::Wrong => self.count("wrong"),
            Outcome::Neither => {}
        }
        self.note(attempt, outcome);
    }

    fn count(&self, outcome: &str) {
        self.metrics.people.logins.with_label_values(&[outcome]).inc();
    }
}

/// Refuses a login that must wait for these milliseconds.
fn delayed(wait_ms: i64) -> HttpResponse {
    let seconds = (wait_ms + 999) / 1000;
    let message =
        format!("too many wrong logins from this address: wait {seconds} s, then try again");
    let word = "login_delayed";
    let mut response = answer::error(StatusCode::TOO_MANY_REQUESTS, word, message);
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

/// Returns the address of the client: the peer's, or what trusted proxies and nodes of the cluster
/// forward.
pub(in crate::api) fn address(request: &HttpRequest) -> IpAddr {
    let peer = request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip());
    let Some(proxies) = request.app_data::<web::Data<LiveValue<TrustedProxies>>>() else {
        return peer;
    };
    let headers = request.headers().get_all(X_FORWARDED_FOR);
    // A header that is not text counts as an entry without a valid address.
    let lines: Vec<_> = headers.map(|value| value.to_str().unwrap_or("?")).collect();
    let entries = lines.iter().flat_map(|line| line.split(','));
    let cluster = request.app_data::<web::Data<ClusterControl>>();
    if cluster.is_some_and(|cluster| cluster.is_from_node(request.headers())) {
        return proxies.get().client_of_node(peer, entries);
    }
    proxies.get().client(peer, entries)
}

/// Returns the address in the name of a sender. In a cluster it is the client's, because the same
/// sender reaches the holder through any node; otherwise it is the peer's.
pub(in crate::api) fn sender_address(request: &HttpRequest) -> String {
    match request.app_data::<web::Data<ClusterControl>>() {
        // Each node may see another notation of an IPv4 address.
        Some(_) => address(request).to_canonical().to_string(),
        None => request.peer_addr().map(|peer| peer.ip().to_string()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn only_a_trusted_proxy_names_the_address_of_the_client() {
        let trusted = TrustedProxies::new(&["127.0.0.1".to_owned()]).unwrap();
        let address_of = |peer: &str, forwarded: &[&str]| {
            let mut request = TestRequest::default().peer_addr(peer.parse().unwrap());
            request = request.app_data(web::Data::new(LiveValue::new(trusted.clone())));
            for value in forwarded {
                request = request.append_header((X_FORWARDED_FOR, *value));
            }
            address(&request.to_http_request()).to_string()
        };
        assert_eq!(address_of("127.0.0.1:1", &[]), "127.0.0.1");
        assert_eq!(address_of("127.0.0.1:1", &["192.0.2.1, 192.0.2.2"]), "192.0.2.2");
        assert_eq!(address_of("127.0.0.1:1", &["192.0.2.1", "2001:db8::1"]), "2001:db8::1");
        assert_eq!(address_of("127.0.0.1:1", &["192.0.2.1", "\u{e9}"]), "127.0.0.1");
        assert_eq!(address_of("192.0.2.9:1", &["192.0.2.1"]), "192.0.2.9");
        let unknown = TestRequest::default().peer_addr("127.0.0.1:1".parse().unwrap());
        let unknown = unknown.insert_header((X_FORWARDED_FOR, "192.0.2.1"));
        assert_eq!(address(&unknown.to_http_request()).to_string(), "127.0.0.1");
    }
}
