//! The HTTP client: one request to the daemon, and the meaning of its response.
//!
//! Must never know: when a request is retried.

mod outcome;
mod renewal;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    time::Duration,
};

use granary_https::{FailureReason, Https, ReloadingAgent, RequestFailure, TrustOptions};
use granary_protocol::{
    ACCEPT_POST, BSON_MEDIA_TYPE, INGEST_PATH, PACKED_HISTOGRAMS, PACKED_MEDIA_TYPE, PING_PATH,
    Ping, PingAnswer, PingBody, RENEW_KEY_HEADER,
};
use ureq::{
    http::Response,
    http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER},
};

use crate::{
    clock::{Stopwatch, skew::DaemonClock, unix_ms, wall_base_ms},
    reporting::totals::Failure,
    sending::{
        address::without_user,
        key::Token,
        request::{Body, Form},
    },
};
pub(crate) use outcome::RequestOutcome;
use outcome::{outcome_of_answer, outcome_without_answer};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a response.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;

/// The daemon in use has answered a request.
const HAS_ANSWERED: u8 = 1;
/// The daemon in use accepts packed bodies.
const READS_PACKED: u8 = 1 << 1;
/// The daemon in use stores native histograms.
const READS_HISTOGRAMS: u8 = 1 << 2;

/// A client for one or several daemons, of which one is in use; it sends one request at a time.
#[derive(Debug)]
pub(crate) struct Client {
    http: ReloadingAgent,
    daemons: Vec<String>,
    current: AtomicUsize,
    /// The announcement in the last response of the daemon in use.
    announced: AtomicU8,
    token: Option<Token>,
    clock: Arc<DaemonClock>,
}

impl Client {
    /// Creates a client for the daemons at these addresses; there is at least one.
    ///
    /// # Errors
    /// A file of the settings of https cannot be used.
    pub(crate) fn new(
        daemons: &[String],
        token: Option<Token>,
        https: Https,
    ) -> Result<Self, String> {
        let config = || {
            ureq::Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                .proxy(None)
                .timeout_connect(Some(CONNECT_TIMEOUT))
                .user_agent(concat!("granary-agent/", env!("CARGO_PKG_VERSION")))
        };
        let http = ReloadingAgent::new(https, Box::new(config))?;
        let (current, announced) = (AtomicUsize::new(0), AtomicU8::new(0));
        let clock = Arc::default();
        Ok(Self { http, daemons: daemons.to_vec(), current, announced, token, clock })
    }

    /// Returns the address of the daemon in use, without secrets.
    pub(crate) fn url(&self) -> String {
        without_user(self.daemon())
    }

    /// Returns the clock of the daemon in use.
    pub(crate) fn clock(&self) -> &Arc<DaemonClock> {
        &self.clock
    }

    /// Updates the daemon's clock from a response.
    fn note_daemon_time<T>(&self, answer: &Response<T>, watch: Stopwatch) {
        let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok());
        if let Some(date) = date {
            self.clock.note_server_time(date, watch.elapsed(), (wall_base_ms(), unix_ms()));
        }
    }

    fn daemon(&self) -> &str {
        let current = self.current.load(Ordering::Relaxed);
        self.daemons.get(current).map_or("", String::as_str)
    }

    /// Switches to the next daemon. Returns false when there is only one.
    pub(crate) fn switch_to_next(&self) -> bool {
        self.announced.store(0, Ordering::Relaxed);
        let next = (self.current.load(Ordering::Relaxed) + 1) % self.daemons.len().max(1);
        let is_other = self.current.swap(next, Ordering::Relaxed) != next;
        if is_other {
            self.clock.clear();
        }
        is_other
    }

    /// Returns the format of batches for the daemon in use: packed if the daemon has announced it.
    pub(crate) fn form(&self) -> Form {
        if self.has_announced(READS_PACKED) { Form::Packed } else { Form::Bson }
    }

    /// Returns true when the daemon in use stores native histograms, and `None` before its first
    /// response.
    pub(crate) fn reads_histograms(&self) -> Option<bool> {
        let reads_histograms = self.has_announced(READS_HISTOGRAMS);
        self.has_announced(HAS_ANSWERED).then_some(reads_histograms)
    }

    fn has_announced(&self, flag: u8) -> bool {
        self.announced.load(Ordering::Relaxed) & flag != 0
    }

    /// Notes what the daemon announces. A response of another program, such as a proxy in front of
    /// a daemon that is down, does not change what is known about histograms.
    fn note_announcement(&self, headers: &HeaderMap, status: u16, outcome: &RequestOutcome) {
        let values = headers.get_all(ACCEPT_POST).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        let flags = values.flat_map(|value| value.split(',')).map(|value| match value.trim() {
            PACKED_MEDIA_TYPE => READS_PACKED,
            PACKED_HISTOGRAMS => READS_HISTOGRAMS,
            _ => 0,
        });
        let announced = flags.fold(0, |all, flag| all | flag);
        let is_from_daemon = announced != 0
            || matches!(outcome, RequestOutcome::Acknowledged(_) | RequestOutcome::UnknownRefs)
            // A proxy refuses large requests with 413.
            || (status == 400 && matches!(outcome, RequestOutcome::Refused(_)));
        let announced = if is_from_daemon {
            HAS_ANSWERED | announced
        } else {
            self.announced.load(Ordering::Relaxed) & !READS_PACKED
        };
        self.announced.store(announced, Ordering::Relaxed);
    }

    /// Posts a body without batches, whose response announces what the daemon reads.
    pub(crate) fn ask(&self, timeout: Duration) -> RequestOutcome {
        self.post(&Body::default(), timeout)
    }

    fn url_of(&self, path: &str) -> String {
        format!("{}{path}", self.daemon())
    }

    /// Posts pings and waits up to `timeout` for the response. The error is the reason of the first
    /// refused ping.
    pub(crate) fn ping(&self, pings: Vec<Ping>, timeout: Duration) -> Result<(), String> {
        let body = PingBody { pings };
        let body = serde_json::to_vec(&body).map_err(|cause| cause.to_string())?;
        let http = self.http.current();
        let mut request =
            http.post(self.url_of(PING_PATH)).header(CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token.authorization());
        }
        let watch = Stopwatch::start();
        let sent = request.config().timeout_global(Some(timeout)).build().send(&body[..]);
        let mut answer = sent.map_err(|cause| self.note_failure(&cause).text)?;
        self.note_daemon_time(&answer, watch);
        let status = answer.status().as_u16();
        let text = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        // The body is always read, so that the connection can be reused.
        let text = text.map_err(|cause| format!("status {status}: {cause}"))?;
        if status != 200 {
            return Err(format!("status {status}"));
        }
        let answer: PingAnswer = serde_json::from_slice(&text)
            .map_err(|cause| format!("status 200, but not the daemon's answer: {cause}"))?;
        // An older daemon supports neither absent hosts nor the clean stop of agents.
        let is_from_old_daemon = |reason: &str| {
            ["`absent`", "`ending`"]
                .iter()
                .any(|field| reason.contains(&format!("unknown field {field}")))
        };
        let refused =
            answer.refused.into_iter().find(|refused| !is_from_old_daemon(&refused.reason));
        refused.map_or(Ok(()), |refused| Err(refused.reason))
    }

    /// Posts the body and waits up to `timeout` for the response.
    pub(crate) fn post(&self, body: &Body, timeout: Duration) -> RequestOutcome {
        let media_type = match body.form {
            Form::Bson => BSON_MEDIA_TYPE,
            Form::Packed => PACKED_MEDIA_TYPE,
        };
        let http = self.http.current();
        let mut request = http.post(self.url_of(INGEST_PATH)).header(CONTENT_TYPE, media_type);
        if body.is_zstd {
            request = request.header(CONTENT_ENCODING, "zstd");
        }
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token.authorization());
        }
        let watch = Stopwatch::start();
        let sent = request.config().timeout_global(Some(timeout)).build().send(&body.bytes[..]);
        let mut answer = match sent {
            Ok(answer) => answer,
            Err(cause) => return outcome_without_answer(self.note_failure(&cause)),
        };
        self.note_daemon_time(&answer, watch);
        let status = answer.status().as_u16();
        let after = answer
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok())
            .map(Duration::from_secs);
        let should_renew = answer.headers().contains_key(RENEW_KEY_HEADER);
        let outcome = match answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec() {
            Ok(bytes) => outcome_of_answer(status, after, &bytes),
            Err(cause) if status == 200 => RequestOutcome::Unknown {
                cause: format!("status {status}: {cause}"),
                failure: Failure::Answer,
            },
            Err(cause) => RequestOutcome::Retry {
                after,
                cause: format!("status {status}: {cause}"),
                failure: Failure::Answer,
            },
        };
        self.note_announcement(answer.headers(), status, &outcome);
        if should_renew {
            self.renew_key();
        }
        outcome
    }

    /// Explains a failure. After a failure of TLS, the next request reads the files again.
    fn note_failure(&self, error: &ureq::Error) -> RequestFailure {
        let failure = RequestFailure::of(error, TrustOptions::Flags);
        if failure.reason == FailureReason::Tls {
            self.http.note_failure();
        }
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_for_a_proxy_is_sent_and_not_shown() {
        for (url, expected) in
            [("https://eve:s3cret@x:1/a@b", "https://x:1/a@b"), ("http://x:7117", "http://x:7117")]
        {
            let client = Client::new(&[url.to_owned()], None, Https::default()).unwrap();
            assert_eq!((client.url().as_str(), client.daemon()), (expected, url));
        }
    }

    #[test]
    fn switch_to_next_cycles_through_the_daemons() {
        let all = ["http://a", "http://b"].map(str::to_owned);
        let client = Client::new(&all, None, Https::default()).unwrap();
        assert_eq!(client.url(), "http://a");
        assert!(client.switch_to_next());
        assert_eq!(client.url_of("/x"), "http://b/x");
        assert!(client.switch_to_next());
        assert_eq!(client.url(), "http://a");
        assert!(!Client::new(&all[..1], None, Https::default()).unwrap().switch_to_next());
    }
}
