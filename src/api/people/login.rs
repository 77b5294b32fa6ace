//! `POST /api/v1/access/login` and `POST /api/v1/access/logout`.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web,
};
use serde::Deserialize;

use super::{either, me::begun, parsed, refusal, run};
use crate::{
    access::{Caller, user_name},
    api::{
        answer,
        caller::{AccessParts, Outcome, Turn, address, caller, set_cookie},
        objects,
        refusal::Refusal,
    },
    kept::{LoginOutcome, LoginRequest, PeopleFault},
};

/// The body of a login.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginBody {
    user: String,
    password: String,
    #[serde(default)]
    code: Option<String>,
}

pub(super) async fn log_in(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    if let Some(refused) = unavailable(&parts) {
        return Ok(refused);
    }
    let body = parts.bodies.receive_change(&request, payload).await?;
    let login = match parsed::<LoginBody>(&body) {
        Ok(login) => login,
        Err(fault) => return Ok(objects::refusal(&fault)),
    };
    Ok(either(check(&request, &parts, login).await))
}

async fn check(
    request: &HttpRequest,
    parts: &web::Data<AccessParts>,
    login: LoginBody,
) -> Result<HttpResponse, HttpResponse> {
    let name = user_name(&login.user);
    let (shared, replaced) = (parts.clone(), parts.session(request));
    let (known, from) = (name.clone(), Some(address(request)));
    let work = move |turn: Turn| {
        let LoginBody { user, password, code } = &login;
        let request = LoginRequest { user, password, code: code.as_deref() };
        let session = shared.people.log_in(request, shared.clock.now())?;
        // The new cookie replaces the previous one in the browser, so the previous session ends.
        if let Some(replaced) = replaced {
            shared.people.log_out(&replaced)?;
        }
        drop(turn);
        shared.audit.note_login(&known, from, LoginOutcome::Done, shared.clock.now());
        Ok::<_, PeopleFault>(session)
    };
    let outcome_of = |session: &Result<_, PeopleFault>| match session {
        Ok(_) => Outcome::Right,
        Err(PeopleFault::WrongLogin) => Outcome::Wrong,
        Err(_) => Outcome::Neither,
    };
    let checked = parts.logins.check(request, &name, work, outcome_of).await?;
    if checked.outcome == Outcome::Wrong {
        // The text in place of a name may be a password.
        let name = if parts.people.has_user(&name) { &*name } else { "" };
        let refused = LoginOutcome::Refused { reason: "password", status: 401 };
        parts.audit.note_login(name, from, refused, parts.clock.now());
        if checked.is_first {
            let address = address(request);
            tracing::warn!(%address, "refused a login: its user, password or code is wrong");
        }
    }
    let session = checked.result.map_err(|fault| refusal(&fault))?;
    Ok(begun(request, parts, &session, StatusCode::OK))
}

pub(super) async fn log_out(request: HttpRequest, parts: web::Data<AccessParts>) -> HttpResponse {
    let cookie = set_cookie(&request, "");
    if let Some(Caller::User(user)) = caller(&request) {
        let shared = parts.clone();
        if let Err(refused) = run(move || shared.people.log_out(&user)).await {
            return refused;
        }
        parts.metrics.people.sessions.set(parts.people.session_count() as i64);
    }
    HttpResponse::NoContent().insert_header((header::SET_COOKIE, cookie)).finish()
}

/// Returns the refusal of logins while access control is off, or while users cannot be read.
pub(super) fn unavailable(parts: &AccessParts) -> Option<HttpResponse> {
    if !parts.is_on {
        let message = "security.access is off, so that no request needs a login";
        return Some(answer::error(StatusCode::CONFLICT, "access_off", message));
    }
    parts.unread()
}
