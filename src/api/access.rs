//! Keys, `GET` and `POST /api/v1/access/keys`, `DELETE /api/v1/access/keys/{id}` and
//! `POST /api/v1/access/keys/{id}/rotate`.
//!
//! Must never know: how keys are stored and checked.

mod codes;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, StatusCode},
    web,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;

use super::{
    answer,
    body::Body,
    caller::{AccessParts, caller, note_object},
    objects,
    refusal::Refusal,
    scope::Scope,
};
use crate::{
    access::{Caller, NewKey},
    kept::{KeyFault, NewKeyAnswer, ObjectFault},
};

/// The time for which the previous secret stays valid by default.
const OVERLAP_MS: i64 = 86_400_000;

/// The body of a rotation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RotateRequest {
    /// The time for which the previous secret stays valid, in milliseconds.
    #[serde(default = "default_overlap_ms")]
    overlap_ms: i64,
}

fn default_overlap_ms() -> i64 {
    OVERLAP_MS
}

/// Registers the routes.
pub(super) fn routes(mut scope: Scope<'_, AccessParts>) {
    scope.route(Method::GET, "/api/v1/access/keys", list);
    scope.route(Method::POST, "/api/v1/access/keys", create);
    scope.route(Method::DELETE, "/api/v1/access/keys/{id}", revoke);
    scope.route(Method::POST, "/api/v1/access/keys/{id}/rotate", rotate);
    codes::routes(&mut scope);
}

async fn list(request: HttpRequest, parts: web::Data<AccessParts>) -> HttpResponse {
    let keys = parts.keys.list(caller(&request).as_ref(), parts.clock.now());
    HttpResponse::Ok().json(json!({ "access": parts.is_on, "keys": keys }))
}

async fn create(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    let caller = caller(&request);
    let create = move || {
        let new: NewKey = parsed(&body)?;
        check_still(&parts, caller.as_ref())?;
        parts.keys.create(new, caller.as_ref(), parts.clock.now())
    };
    let answer = |made: NewKeyAnswer| {
        note_object(&request, made.name());
        HttpResponse::Created().json(made)
    };
    Ok(respond(create, answer).await)
}

async fn rotate(
    id: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    let caller = caller(&request);
    let rotate = move || {
        let RotateRequest { overlap_ms } = parsed(&body)?;
        check_still(&parts, caller.as_ref())?;
        parts.keys.rotate(&id, overlap_ms, caller.as_ref(), parts.clock.now())
    };
    let answer = |made: NewKeyAnswer| {
        note_object(&request, made.name());
        HttpResponse::Ok().json(made)
    };
    Ok(respond(rotate, answer).await)
}

async fn revoke(
    id: web::Path<String>,
    request: HttpRequest,
    parts: web::Data<AccessParts>,
) -> HttpResponse {
    let caller = caller(&request);
    let revoke = move || parts.keys.revoke(&id, caller.as_ref(), parts.clock.now());
    respond(revoke, |()| HttpResponse::NoContent().finish()).await
}

/// Refuses a caller whose credentials ended while the body of the request arrived.
fn check_still(parts: &AccessParts, caller: Option<&Caller>) -> Result<(), KeyFault> {
    if parts.still_admits(caller) {
        return Ok(());
    }
    Err(KeyFault::Forbidden("the key or session of the request has ended".to_owned()))
}

fn parsed<T: DeserializeOwned>(body: &Body) -> Result<T, ObjectFault> {
    serde_json::from_slice(&body.bytes)
        .map_err(|cause| ObjectFault::Invalid(format!("body: {cause}")))
}

/// Runs work that waits for the disk outside of the HTTP worker, and answers with its result.
async fn respond<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeyFault> + Send + 'static,
    answer: impl FnOnce(T) -> HttpResponse,
) -> HttpResponse {
    let failed = |cause| answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause);
    match web::block(work).await {
        Ok(Ok(done)) => answer(done),
        Ok(Err(KeyFault::Object(fault))) => objects::refusal(&fault),
        Ok(Err(KeyFault::Forbidden(message))) => {
            answer::error(StatusCode::FORBIDDEN, "forbidden", message)
        }
        Ok(Err(cause @ KeyFault::WrongCode)) => {
            answer::error(StatusCode::UNAUTHORIZED, "wrong_code", cause)
        }
        Ok(Err(cause @ KeyFault::Random(_))) => failed(cause.to_string()),
        Err(cause) => failed(cause.to_string()),
    }
}
