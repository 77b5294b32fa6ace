//! Changes of the caller's own password and second factor.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;

use super::{either, invalid, me::begun, parsed, refusal, run};
use crate::{
    access::{Caller, Password, UserCaller, check_password},
    api::{
        answer,
        caller::{AccessParts, Outcome, Turn, caller},
        refusal::Refusal,
    },
    kept::{ObjectFault, OwnChange, PeopleFault},
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

/// The parameters of a handler: the request and its body.
type Received = (HttpRequest, web::Payload, web::Data<AccessParts>);

pub(super) async fn change_password(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    respond((request, payload, parts), async |request, parts, user, body| {
        let PasswordBody { password, new_password } = body;
        check_password(&user.user.name, &new_password)
            .map_err(|message| invalid(ObjectFault::Invalid(message)))?;
        let session = confirmed(request, parts, &user, password, move |parts, user| {
            let password = Password::new(&new_password)?;
            parts.people.change_own(user, OwnChange::Password(password), parts.clock.now())
        });
        Ok(begun(request, parts, &session.await?, StatusCode::OK))
    })
    .await
}

pub(super) async fn begin_totp(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    respond((request, payload, parts), async |request, parts, user, body| {
        let ConfirmationBody { password } = body;
        let factor = confirmed(request, parts, &user, password, |parts, user| {
            parts.people.begin_totp(user, parts.clock.now())
        });
        let factor = factor.await?;
        let uri = factor.uri(&user.user.name);
        Ok(HttpResponse::Ok().json(json!({ "secret": factor.secret_text(), "uri": uri })))
    })
    .await
}

pub(super) async fn confirm_totp(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    respond((request, payload, parts), async |request, parts, user, CodeBody { code }| {
        let shared = parts.clone();
        let session = run(move || {
            let change = OwnChange::ConfirmTotp(&code);
            shared.people.change_own(&user, change, shared.clock.now())
        });
        Ok(begun(request, parts, &session.await?, StatusCode::OK))
    })
    .await
}

pub(super) async fn remove_totp(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    respond((request, payload, parts), async |request, parts, user, body| {
        let ConfirmationBody { password } = body;
        let session = confirmed(request, parts, &user, password, |parts, user| {
            parts.people.change_own(user, OwnChange::RemoveTotp, parts.clock.now())
        });
        Ok(begun(request, parts, &session.await?, StatusCode::OK))
    })
    .await
}

/// Receives the body of a request of a user who has logged in, and answers it.
async fn respond<B: DeserializeOwned>(
    (request, payload, parts): Received,
    answer: impl AsyncFnOnce(
        &HttpRequest,
        &web::Data<AccessParts>,
        UserCaller,
        B,
    ) -> Result<HttpResponse, HttpResponse>,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    let answered = async {
        let body = parsed(&body).map_err(invalid)?;
        let user = session_of(&request).ok_or_else(no_user)?;
        answer(&request, &parts, user, body).await
    };
    Ok(either(answered.await))
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
