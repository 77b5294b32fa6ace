//! Responses: errors as status codes, and bodies that are written while the client reads them.
//!
//! Must never know: what was requested.

pub(super) mod pulled;
pub(super) mod slow;
pub(super) mod streamed;

use std::fmt::Display;

use actix_web::{HttpResponse, http::StatusCode};
use granary_protocol::ErrorAnswer;

use crate::{
    query::QueryError,
    store::StoreError,
    telemetry::{Metrics, QueryOutcome},
};

/// The `Retry-After` of a refused request.
const RETRY_AFTER_SECONDS: u64 = 1;

/// Returns an error response: a word for programs, a sentence for people.
pub(crate) fn error(status: StatusCode, word: &str, message: impl Display) -> HttpResponse {
    let answer = ErrorAnswer { error: word.to_owned(), message: message.to_string() };
    let mut response = HttpResponse::build(status);
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        response.insert_header(("Retry-After", RETRY_AFTER_SECONDS.to_string()));
    }
    response.json(answer)
}

/// Counts a query without a result, and returns its response.
pub(crate) fn count_refusal(
    metrics: &Metrics,
    outcome: QueryOutcome,
    response: HttpResponse,
) -> HttpResponse {
    metrics.queries_refused.with_label_values(&[outcome.as_str()]).inc();
    response
}

/// Returns the response to a failed query.
pub(crate) fn query_error(cause: &QueryError) -> HttpResponse {
    match cause {
        QueryError::Invalid(message) | QueryError::Execution(message) => {
            error(StatusCode::BAD_REQUEST, "invalid", message)
        }
        QueryError::TooMuch(message) => {
            error(StatusCode::UNPROCESSABLE_ENTITY, "too_much", message)
        }
        QueryError::Busy(message) => error(StatusCode::SERVICE_UNAVAILABLE, "busy", message),
        QueryError::Timeout(message) => error(StatusCode::SERVICE_UNAVAILABLE, "timeout", message),
        QueryError::Store(cause) => store_error(cause),
    }
}

/// Returns the response to a failed operation of the store, and logs the cause.
pub(crate) fn store_error(cause: &StoreError) -> HttpResponse {
    let detail: &dyn std::error::Error = cause;
    tracing::error!(cause = detail, "a request failed");
    if cause.is_disk_full() {
        return error(StatusCode::INSUFFICIENT_STORAGE, "disk_full", cause.reason());
    }
    error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause.with_causes())
}
