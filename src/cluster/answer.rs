//! Error responses of a node.

use std::fmt::Display;

use actix_web::{HttpResponse, http::StatusCode};
use granary_protocol::ErrorAnswer;

/// The `Retry-After` of a refused request.
const RETRY_AFTER_SECONDS: &str = "1";

/// Returns an error response: a word for programs, a sentence for people.
pub(super) fn error(status: StatusCode, word: &str, message: impl Display) -> HttpResponse {
    let answer = ErrorAnswer { error: word.to_owned(), message: message.to_string() };
    let mut response = HttpResponse::build(status);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.insert_header(("Retry-After", RETRY_AFTER_SECONDS));
    }
    response.json(answer)
}
