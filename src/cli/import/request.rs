//! A request of an import, and the meaning of its response.

use std::time::Duration;

use anyhow::Context;
use granary_https::{RequestFailure, TrustOptions};
use granary_protocol::{BSON_MEDIA_TYPE, ErrorAnswer, INGEST_PATH, IngestAnswer};
use ureq::http::header::RETRY_AFTER;

use crate::cli::http::Daemon;

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The connection to a daemon.
#[derive(Debug)]
pub(super) struct Connection {
    http: ureq::Agent,
    url: String,
}

/// The outcome of a request.
pub(super) enum Outcome {
    Acknowledged(IngestAnswer),
    UnknownRefs,
    TooLarge(String),
    /// A refusal that a retry would not change.
    Refused(String),
    Retry {
        after: Option<Duration>,
        cause: String,
        answered: bool,
    },
}

impl Connection {
    /// Creates a connection with the options of the command.
    ///
    /// # Errors
    /// A file of the options of https cannot be used.
    pub(super) fn new(daemon: &Daemon) -> anyhow::Result<Self> {
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(TIMEOUT))
            .user_agent(concat!("granary-import/", env!("CARGO_PKG_VERSION")));
        Ok(Self { http: daemon.agent_with(config)?, url: daemon.url.clone() })
    }

    /// Returns the daemon's address.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Sends encoded batches.
    pub(super) fn post(&self, body: &[u8]) -> Outcome {
        let request = self.http.post(format!("{}{INGEST_PATH}", self.url));
        let mut response = match request.content_type(BSON_MEDIA_TYPE).send(body) {
            Ok(response) => response,
            Err(cause) => {
                let cause = RequestFailure::of(&cause, TrustOptions::Flags).text;
                return Outcome::Retry { after: None, cause, answered: false };
            }
        };
        let status = response.status().as_u16();
        let after = response.headers().get(RETRY_AFTER);
        let after = after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let after = after.map(Duration::from_secs);
        let read = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let answered = true;
        match read.context("read the answer") {
            Ok(text) => interpret(status, after, &text),
            Err(cause) => Outcome::Retry { after, cause: format!("{cause:#}"), answered },
        }
    }
}

/// Interprets a response.
fn interpret(status: u16, after: Option<Duration>, body: &[u8]) -> Outcome {
    let answered = true;
    if status == 200 {
        return match serde_json::from_slice(body) {
            Ok(answer) => Outcome::Acknowledged(answer),
            Err(_) => Outcome::Refused("the response is not from a Granary daemon".to_owned()),
        };
    }
    let answer: Option<ErrorAnswer> = serde_json::from_slice(body).ok();
    let (word, message) =
        answer.map_or_else(Default::default, |answer| (answer.error, answer.message));
    let cause = format!("{status} {word} {message}").trim_end().to_owned();
    match status {
        409 if word == "unknown_refs" => Outcome::UnknownRefs,
        413 => Outcome::TooLarge(cause),
        408 | 429 | 500..=599 => Outcome::Retry { after, cause, answered },
        _ => Outcome::Refused(cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_an_outcome() {
        let error = |word: &str| format!(r#"{{"error":"{word}","message":"m"}}"#).into_bytes();
        let outcome = |status, body: &[u8]| match interpret(status, None, body) {
            Outcome::Acknowledged(_) => "acknowledged",
            Outcome::UnknownRefs => "unknown refs",
            Outcome::TooLarge(_) => "too large",
            Outcome::Refused(_) => "refused",
            Outcome::Retry { .. } => "retry",
        };
        assert_eq!(outcome(200, br#"{"accepted":3,"duplicates":1}"#), "acknowledged");
        assert_eq!(outcome(200, b"<html>"), "refused");
        assert_eq!(outcome(409, &error("unknown_refs")), "unknown refs");
        assert_eq!(outcome(413, &error("too_large")), "too large");
        for status in [400, 401, 404, 405] {
            assert_eq!(outcome(status, b""), "refused", "{status}");
        }
        for status in [408, 429, 500, 503, 507] {
            assert_eq!(outcome(status, b""), "retry", "{status}");
        }
    }
}
