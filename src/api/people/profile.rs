//! Changes of the caller's own password and second factor.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::Deserialize;
use serde_json::json;

use super::{either, invalid, me::begun, parsed, refusal, run};
use crate::{
    access::{Caller, Password, UserCaller, check_password},
    api::{
        answer,
        body::Body,
        caller::{AccessParts, Outcome, Turn, caller},
        refusal::Refusal,
    },
    kept::{NewSession, ObjectFault, OwnChange, PeopleFault},
};

/// The body of a change of the password.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PasswordBody {
    password: String,
    new_password: String,
}

/// The password with which a user confirms a change.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfirmationBody {
    password: String,
}

/// The first code of a second factor.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CodeBody {
    code: String,
}

pub(super) async fn change_password(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    Ok(either(set_password(&request, &parts, &body).await))
}

async fn set_password(
    request: &HttpRequest,
    parts: &web::Data<AccessParts>,
    body: &Body,
) -> Result<HttpResponse, HttpResponse> {
    let PasswordBody { password, new_password } = parsed(body).map_err(invalid)?;
    let user = session_of(request).ok_or_else(no_user)?;
    check_password(&user.user.name, &new_password)
        .map_err(|message| invalid(ObjectFault::Invalid(message)))?;
    let session = confirmed(request, parts, &user, password, move |parts, user| {
        let password = Password::new(&new_password)?;
        parts.people.change_own(user, OwnChange::Password(password), parts.clock.now())
    });
    Ok(renewed(request, parts, &session.await?))
}

pub(super) async fn begin_totp(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    Ok(either(start_totp(&request, &parts, &body).await))
}

async fn start_totp(
    request: &HttpRequest,
    parts: &web::Data<AccessParts>,
    body: &Body,
) -> Result<HttpResponse, HttpResponse> {
    let ConfirmationBody { password } = parsed(body).map_err(invalid)?;
    let user = session_of(request).ok_or_else(no_user)?;
    let factor = confirmed(request, parts, &user, password, |parts, user| {
        parts.people.begin_totp(user, parts.clock.now())
    });
    let factor = factor.await?;
    let uri = factor.uri(&user.user.name);
    Ok(HttpResponse::Ok().json(json!({ "secret": factor.secret_text(), "uri": uri })))
}

pub(super) async fn confirm_totp(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    Ok(either(finish_totp(&request, &parts, &body).await))
}

async fn finish_totp(
    request: &HttpRequest,
    parts: &web::Data<AccessParts>,
    body: &Body,
) -> Result<HttpResponse, HttpResponse> {
    let CodeBody { code } = parsed(body).map_err(invalid)?;
    let user = session_of(request).ok_or_else(no_user)?;
    let shared = parts.clone();
    let session = run(move || {
        let change = OwnChange::ConfirmTotp(&code);
        shared.people.change_own(&user, change, shared.clock.now())
    });
    Ok(renewed(request, parts, &session.await?))
}

pub(super) async fn remove_totp(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    Ok(either(drop_totp(&request, &parts, &body).await))
}

async fn drop_totp(
    request: &HttpRequest,
    parts: &web::Data<AccessParts>,
    body: &Body,
) -> Result<HttpResponse, HttpResponse> {
    let ConfirmationBody { password } = parsed(body).map_err(invalid)?;
    let user = session_of(request).ok_or_else(no_user)?;
    let session = confirmed(request, parts, &user, password, |parts, user| {
        parts.people.change_own(user, OwnChange::RemoveTotp, parts.clock.now())
    });
    Ok(renewed(request, parts, &session.await?))
}

fn renewed(request: &HttpRequest, parts: &AccessParts, session: &NewSession) -> HttpResponse {
    begun(request, parts, session, StatusCode::OK)
}

/// Returns the session of a caller who has logged in.
pub(super) fn session_of(request: &HttpRequest) -> Option<UserCaller> {
    match caller(request)? {
        Caller::User(user) => Some(user),
        Caller::Key(_) | Caller::Client(_) => None,
    }
}

pub(super) fn no_user() -> HttpResponse {
    let message = "only a user who has logged in has a password and a second factor";
    answer::error(StatusCode::CONFLICT, "no_user", message)
}

/// Runs a change that the caller confirms with the password. Wrong passwords are delayed like those
/// of logins.
async fn confirmed<T: Send + 'static>(
    request: &HttpRequest,
    parts: &web::Data<AccessParts>,
    user: &UserCaller,
    password: String,
    change: impl FnOnce(&AccessParts, &UserCaller) -> Result<T, PeopleFault> + Send + 'static,
) -> Result<T, HttpResponse> {
    let (shared, caller) = (parts.clone(), user.clone());
    let work = move |_turn: Turn| {
        let is_right = shared.people.check_password(&caller.user.name, &password).is_some();
        is_right.then(|| change(&shared, &caller))
    };
    let outcome_of =
        |changed: &Option<_>| if changed.is_some() { Outcome::Right } else { Outcome::Wrong };
    let checked = parts.logins.check(request, &user.user.name, work, outcome_of).await?;
    let changed = checked.result.ok_or_else(|| {
        let message = "the present password is wrong";
        answer::error(StatusCode::FORBIDDEN, "wrong_password", message)
    })?;
    changed.map_err(|fault| refusal(&fault))
}
