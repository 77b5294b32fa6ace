//! The outcome of a request with batches: the meaning of its response, or of the lack of one.
//!
//! Must never know: when a request is retried.

use std::time::Duration;

use granary_https::{FailureReason, RequestFailure};
use granary_protocol::{ErrorAnswer, IngestAnswer};

use crate::reporting::totals::Failure;

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

/// Classifies a request without a response: it was not sent, or its outcome is unknown.
pub(super) fn outcome_without_answer(
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
pub(super) fn outcome_of_answer(
    status: u16,
    after: Option<Duration>,
    body: &[u8],
) -> RequestOutcome {
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
}
