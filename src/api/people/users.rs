//! `GET` and `POST /api/v1/access/users`, `POST` and `DELETE /api/v1/access/users/{name}`.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde_json::json;

use super::{check_still, either, invalid, parsed, run};
use crate::{
    access::{Password, Roles, check_password},
    api::{
        body::Body,
        caller::{AccessParts, caller, note_object},
        refusal::Refusal,
    },
    kept::{NewUser, ObjectFault, UserAnswer, UserChange},
};

/// The body that creates a user.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewUserBody {
    name: String,
    password: String,
    roles: Roles,
}

/// The body that changes a user; missing properties are unchanged.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeBody {
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    roles: Option<Roles>,
    #[serde(default)]
    disabled: Option<bool>,
    /// Only `false` is possible: it removes the second factor.
    #[serde(default)]
    totp: Option<bool>,
    /// Only `true` is possible: each change ends all sessions.
    #[serde(default)]
    logout: Option<bool>,
}

pub(super) async fn list(request: HttpRequest, parts: web::Data<AccessParts>) -> HttpResponse {
    let users = parts.people.list(caller(&request).as_ref(), parts.clock.now());
    HttpResponse::Ok().json(json!({ "access": parts.is_on, "users": users }))
}

pub(super) async fn create(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    Ok(either(add_user(&request, &parts, &body).await))
}

async fn add_user(
    request: &HttpRequest,
    parts: &web::Data<AccessParts>,
    body: &Body,
) -> Result<HttpResponse, HttpResponse> {
    let NewUserBody { name, password, roles } = parsed(body).map_err(invalid)?;
    let password = hashed(parts, &name, Some(password)).await?;
    note_object(request, &name);
    let (shared, caller) = (parts.clone(), caller(request));
    let create = move || {
        check_still(&shared, caller.as_ref())?;
        let new = NewUser { name, roles, password };
        shared.people.create(new, caller.as_ref(), shared.clock.now())
    };
    Ok(HttpResponse::Created().json(run(create).await?))
}

pub(super) async fn change(
    name: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    Ok(either(change_user(&request, &parts, &body, &name).await))
}

async fn change_user(
    request: &HttpRequest,
    parts: &web::Data<AccessParts>,
    body: &Body,
    name: &str,
) -> Result<HttpResponse, HttpResponse> {
    let ChangeBody { password, roles, disabled, totp, logout } = parsed(body).map_err(invalid)?;
    if totp == Some(true) {
        let message = "totp: only the user can set up a second factor; use false";
        return Err(invalid(ObjectFault::Invalid(message.to_owned())));
    }
    if logout == Some(false) {
        let message = "logout: each change ends the sessions of the user; use true";
        return Err(invalid(ObjectFault::Invalid(message.to_owned())));
    }
    let password = hashed(parts, name, password).await?;
    let change = UserChange { roles, password, disabled, without_totp: totp.is_some() };
    let (shared, caller, name) = (parts.clone(), caller(request), name.to_owned());
    let change = move || {
        check_still(&shared, caller.as_ref())?;
        shared.people.change(&name, change, caller.as_ref(), shared.clock.now())
    };
    let changed: UserAnswer = run(change).await?;
    Ok(HttpResponse::Ok().json(changed))
}

pub(super) async fn remove(
    name: web::Path<String>,
    request: HttpRequest,
    parts: web::Data<AccessParts>,
) -> HttpResponse {
    let (shared, caller) = (parts.clone(), caller(&request));
    let remove = move || {
        check_still(&shared, caller.as_ref())?;
        shared.people.remove(&name, caller.as_ref())
    };
    either(run(remove).await.map(|()| HttpResponse::NoContent().finish()))
}

/// Checks and hashes a new password, when its turn comes.
async fn hashed(
    parts: &AccessParts,
    name: &str,
    password: Option<String>,
) -> Result<Option<Password>, HttpResponse> {
    let Some(password) = password else { return Ok(None) };
    check_password(name, &password).map_err(|message| invalid(ObjectFault::Invalid(message)))?;
    let turn = parts.logins.turn().await?;
    run(move || {
        let hashed = Password::new(&password)?;
        drop(turn);
        Ok(Some(hashed))
    })
    .await
}
