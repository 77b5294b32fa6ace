//! Users over HTTP: login, the caller's own profile, and the users whom a caller manages.
//!
//! Must never know: how passwords, codes and sessions are checked and stored.

mod accept;
mod login;
mod me;
mod oidc;
mod oidc_problem;
mod profile;
mod sessions;
mod users;

use actix_web::{
    HttpResponse,
    http::{Method, StatusCode},
    web,
};
use serde::de::DeserializeOwned;

use super::{answer, body::Body, caller::AccessParts, objects, scope::Scope};
use crate::{
    access::Caller,
    kept::{ObjectFault, PeopleFault},
};

/// Registers the routes.
pub(super) fn routes(mut scope: Scope<'_, AccessParts>) {
    scope.route(Method::POST, "/api/v1/access/login", login::log_in);
    scope.route(Method::POST, "/api/v1/access/logout", login::log_out);
    scope.route(Method::GET, "/api/v1/access/oidc", oidc::provider);
    scope.route(Method::GET, "/login/oidc", oidc::begin);
    scope.route(Method::GET, "/login/oidc/callback", oidc::finish);
    scope.route(Method::POST, "/api/v1/access/accept", accept::accept);
    scope.route(Method::GET, "/api/v1/access/me", me::me);
    scope.route(Method::POST, "/api/v1/access/password", profile::change_password);
    scope.route(Method::POST, "/api/v1/access/totp", profile::begin_totp);
    scope.route(Method::POST, "/api/v1/access/totp/confirm", profile::confirm_totp);
    scope.route(Method::POST, "/api/v1/access/totp/remove", profile::remove_totp);
    scope.route(Method::GET, "/api/v1/access/sessions", sessions::list);
    scope.route(Method::DELETE, "/api/v1/access/sessions", sessions::end_all);
    scope.route(Method::DELETE, "/api/v1/access/sessions/{id}", sessions::end_one);
    scope.route(Method::GET, "/api/v1/access/users", users::list);
    scope.route(Method::POST, "/api/v1/access/users", users::create);
    scope.route(Method::POST, "/api/v1/access/users/{name}", users::change);
    scope.route(Method::DELETE, "/api/v1/access/users/{name}", users::remove);
}

/// Parses a body that may contain a password, so that the error does not repeat its content.
fn parsed<T: DeserializeOwned>(body: &Body) -> Result<T, ObjectFault> {
    serde_json::from_slice(&body.bytes).map_err(|cause| {
        let (line, column) = (cause.line(), cause.column());
        ObjectFault::Invalid(format!(
            "body: line {line}, column {column} is not what this request expects; see \
             docs/people.md"
        ))
    })
}

/// Refuses an invalid request.
#[expect(clippy::needless_pass_by_value, reason = "a function for `map_err`")]
fn invalid(fault: ObjectFault) -> HttpResponse {
    objects::refusal(&fault)
}

/// Runs work that waits for the disk or hashes a password outside of the HTTP worker.
async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PeopleFault> + Send + 'static,
) -> Result<T, HttpResponse> {
    match web::block(work).await {
        Ok(outcome) => outcome.map_err(|fault| refusal(&fault)),
        Err(cause) => Err(failed(cause.to_string())),
    }
}

fn failed(cause: String) -> HttpResponse {
    answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause)
}

fn refusal(fault: &PeopleFault) -> HttpResponse {
    let (status, word) = match fault {
        PeopleFault::Object(fault) => return objects::refusal(fault),
        PeopleFault::Random(cause) => return failed(cause.to_string()),
        PeopleFault::Exists(_) => (StatusCode::CONFLICT, "conflict"),
        PeopleFault::Forbidden(_) => (StatusCode::FORBIDDEN, "forbidden"),
        PeopleFault::WrongLogin => (StatusCode::UNAUTHORIZED, "wrong_login"),
        PeopleFault::CodeRequired => (StatusCode::UNAUTHORIZED, "code_required"),
        PeopleFault::Disabled => (StatusCode::FORBIDDEN, "disabled"),
        PeopleFault::WrongCode => (StatusCode::FORBIDDEN, "wrong_code"),
        PeopleFault::NoSession => (StatusCode::UNAUTHORIZED, "no_session"),
        PeopleFault::SecondFactor(_) => (StatusCode::CONFLICT, "second_factor"),
    };
    answer::error(status, word, fault.to_string())
}

/// Returns the response of either variant.
fn either(result: Result<HttpResponse, HttpResponse>) -> HttpResponse {
    result.unwrap_or_else(|refused| refused)
}

/// Refuses a caller whose credentials ended while the body of the request arrived.
fn check_still(parts: &AccessParts, caller: Option<&Caller>) -> Result<(), PeopleFault> {
    if parts.still_admits(caller) { Ok(()) } else { Err(PeopleFault::NoSession) }
}
