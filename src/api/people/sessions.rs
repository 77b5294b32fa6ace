//! The caller's own sessions: `GET` and `DELETE /api/v1/access/sessions`, and
//! `DELETE /api/v1/access/sessions/{id}`.

use actix_web::{HttpRequest, HttpResponse, http::header, web};
use serde_json::json;

use super::{
    either,
    profile::{no_user, session_of},
    run,
};
use crate::api::caller::{AccessParts, note_object, set_cookie};

pub(super) async fn list(request: HttpRequest, parts: web::Data<AccessParts>) -> HttpResponse {
    let Some(user) = session_of(&request) else { return no_user() };
    let sessions = parts.people.sessions_of(&user, parts.clock.now());
    HttpResponse::Ok().json(json!({ "sessions": sessions }))
}

pub(super) async fn end_one(
    id: web::Path<String>,
    request: HttpRequest,
    parts: web::Data<AccessParts>,
) -> HttpResponse {
    // The digests of cookies are of no use in the audit.
    note_object(&request, "");
    let Some(user) = session_of(&request) else { return no_user() };
    let shared = parts.clone();
    let end = move || shared.people.end_one(&user, &id, shared.clock.now());
    let ended = either(run(end).await.map(|()| HttpResponse::NoContent().finish()));
    count(&parts);
    ended
}

pub(super) async fn end_all(request: HttpRequest, parts: web::Data<AccessParts>) -> HttpResponse {
    let Some(user) = session_of(&request) else { return no_user() };
    let shared = parts.clone();
    let end = move || shared.people.end_all(&user, shared.clock.now());
    let cookie = (header::SET_COOKIE, set_cookie(&request, ""));
    let ended = run(end).await.map(|()| HttpResponse::NoContent().insert_header(cookie).finish());
    count(&parts);
    either(ended)
}

fn count(parts: &AccessParts) {
    parts.metrics.people.sessions.set(parts.people.session_count() as i64);
}
