//! The HTTP client: one request to the daemon, and the meaning of its response.
//!
//! Must never know: when a request is retried.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    time::Duration,
};

use granary_https::{FailureReason, Https, ReloadingAgent, RequestFailure, TrustOptions};
use granary_protocol::{
    ACCEPT_POST, BSON_MEDIA_TYPE, EnrollAnswer, ErrorAnswer, INGEST_PATH, IngestAnswer,
    PACKED_HISTOGRAMS, PACKED_MEDIA_TYPE, PING_PATH, Ping, PingAnswer, PingBody, RENEW_KEY_HEADER,
    RENEW_PATH,
};
use tracing::{info, warn};
use ureq::{
    http::Response,
    http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER},
};

use crate::{
    clock::{Stopwatch, skew::DaemonClock, unix_ms, wall_base_ms},
    reporting::totals::Failure,
    sending::{
        address::without_user,
        key::{NewKeyFile, Token},
        request::{Body, Form},
    },
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of the request for the next key.
const RENEW_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of a response.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;

/// The daemon in use has answered a request.
const HAS_ANSWERED: u8 = 1;
/// The daemon in use accepts packed bodies.
const READS_PACKED: u8 = 1 << 1;
/// The daemon in use stores native histograms.
const READS_HISTOGRAMS: u8 = 1 << 2;

/// The name of the daemon's error when plain HTTP reaches its port of https.
const TLS_REQUIRED: &str = "tls_required";

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    /// The batches are on the daemon's disk.
    Acknowledged(IngestAnswer),
    /// The daemon does not know some refs: repeat the request with definitions.
    UnknownRefs,
    /// The daemon rejects the body for good.
    Refused(String),
    /// There is no valid response: the daemon may have accepted the batches. Send them again.
    Unknown {
        /// The cause.
        cause: String,
        /// The kind of the failure.
        failure: Failure,
    },
    /// Retry later, and not before `after` if it is set.
    Retry {
        /// The delay that the daemon requested.
        after: Option<Duration>,
        /// The cause.
        cause: String,
        /// The kind of the failure.
        failure: Failure,
    },
}

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
        // An older daemon supports neither absent hosts nor the orderly stop of agents.
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

    /// Renews the key in its file. The earlier key stays valid for a while. A failure is logged,
    /// and the renewal is retried an hour later.
    fn renew_key(&self) {
        let Some(token) = &self.token else { return };
        let Some(file) = token.file_to_renew() else { return };
        // The new file is created first, so that the daemon replaces no key that cannot be written.
        let renewed = match NewKeyFile::create(file) {
            Err(cause) => Err(format!("cannot write a file next to it: {cause}")),
            Ok(new) => match self.request_next_key(token) {
                Ok(answer) => new.replace(&answer.token).map_err(|cause| cause.to_string()),
                Err(cause) => {
                    new.discard();
                    Err(cause)
                }
            },
        };
        let file = file.display();
        match renewed {
            Ok(()) => info!(%file, "renewed the key"),
            Err(cause) => warn!(%file, cause, "cannot renew the key before it expires"),
        }
    }

    fn request_next_key(&self, token: &Token) -> Result<EnrollAnswer, String> {
        let request = self.http.current().post(self.url_of(RENEW_PATH));
        let request = request.header(AUTHORIZATION, token.authorization());
        let sent = request.config().timeout_global(Some(RENEW_TIMEOUT)).build().send_empty();
        let mut answer = sent.map_err(|cause| self.note_failure(&cause).text)?;
        let status = answer.status().as_u16();
        let text = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let text = text.map_err(|cause| format!("status {status}: {cause}"))?;
        if status != 200 {
            return Err(format!("status {status}"));
        }
        serde_json::from_slice(&text)
            .map_err(|cause| format!("status 200, but not the daemon's answer: {cause}"))
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

/// Classifies a request without a response: it was not sent, or its outcome is unknown.
fn outcome_without_answer(
    RequestFailure { reason, text: cause }: RequestFailure,
) -> RequestOutcome {
    let failure = Failure::NoAnswer(reason);
    match reason {
        FailureReason::Connect | FailureReason::Tls => {
            RequestOutcome::Retry { after: None, cause, failure }
        }
        FailureReason::Timeout | FailureReason::Connection => {
            RequestOutcome::Unknown { cause, failure }
        }
    }
}

/// Classifies a response by its status and body.
fn outcome_of_answer(status: u16, after: Option<Duration>, body: &[u8]) -> RequestOutcome {
    if status == 200 {
        return match serde_json::from_slice(body) {
            Ok(answer) => RequestOutcome::Acknowledged(answer),
            Err(cause) => {
                let cause = format!("status 200, but not the daemon's answer: {cause}");
                RequestOutcome::Unknown { cause, failure: Failure::Answer }
            }
        };
    }
    let answer: Option<ErrorAnswer> = serde_json::from_slice(body).ok();
    let error_name = answer.as_ref().map_or("", |answer| answer.error.as_str());
    let message = answer.as_ref().map_or("", |answer| answer.message.as_str());
    let cause = format!("status {status} {error_name} {message}").trim_end().to_owned();
    match status {
        409 if error_name == "unknown_refs" => RequestOutcome::UnknownRefs,
        // A port of https refuses plain HTTP with 400, and so does a daemon when a proxy has added
        // a second key. Neither response is about the batches.
        400 if [TLS_REQUIRED, "two_keys"].contains(&error_name) => {
            RequestOutcome::Retry { after, cause, failure: Failure::Answer }
        }
        400 if answer.is_none() => {
            let cause = format!("{cause}, not from the daemon; does the port serve https?");
            RequestOutcome::Retry { after, cause, failure: Failure::Answer }
        }
        400 | 413 => RequestOutcome::Refused(cause),
        _ => RequestOutcome::Retry { after, cause, failure: Failure::Answer },
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
    fn each_status_leads_to_its_outcome() {
        let error = |word: &str| format!(r#"{{"error":"{word}","message":"m"}}"#).into_bytes();
        let check = |status, body: &[u8], expected: fn(&RequestOutcome) -> bool| {
            let outcome = outcome_of_answer(status, None, body);
            assert!(expected(&outcome), "{status}: {outcome:?}");
        };
        let retry = |outcome: &RequestOutcome| matches!(outcome, RequestOutcome::Retry { .. });
        let refused = |outcome: &RequestOutcome| matches!(outcome, RequestOutcome::Refused(_));
        let answer = br#"{"accepted":3,"duplicates":1}"#;
        check(200, answer, |o| matches!(o, RequestOutcome::Acknowledged(a) if a.accepted == 3));
        check(200, b"<html>a login page</html>", |o| matches!(o, RequestOutcome::Unknown { .. }));
        check(409, &error("unknown_refs"), |o| *o == RequestOutcome::UnknownRefs);
        check(409, &error("something_else"), retry);
        check(400, &error("malformed"), refused);
        check(400, &error("tls_required"), retry);
        check(400, b"<html>The plain HTTP request was sent to HTTPS port</html>", retry);
        check(413, b"", refused);
        for status in [301, 401, 404, 429, 500, 502, 503, 507] {
            check(status, b"no json", retry);
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
