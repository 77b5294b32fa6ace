//! The text of receivers: `GET`, `PUT` and `DELETE` of `/api/v1/notifications`, and
//! `POST /api/v1/notifications/check`.

use actix_web::{HttpRequest, HttpResponse, web};

use super::texts::{
    Changed, DeleteQuery, Parts, TextRequest, read, refusal, remove, respond, save,
};
use crate::{
    api::{caller::names_other_project, refusal::Refusal},
    kept::{AlertText, TextFault},
};

pub(super) async fn get(parts: Parts) -> HttpResponse {
    respond(move || Ok(parts.rules.text(AlertText::Receivers)?)).await
}

pub(super) async fn put(
    request: HttpRequest,
    payload: web::Payload,
    parts: Parts,
) -> Result<HttpResponse, Refusal> {
    if let Some(refused) = refuse_other_project(&request) {
        return Ok(refused);
    }
    save(Changed::Receivers, &request, payload, parts).await
}

pub(super) async fn delete(
    request: HttpRequest,
    params: DeleteQuery,
    parts: Parts,
) -> HttpResponse {
    if let Some(refused) = refuse_other_project(&request) {
        return refused;
    }
    remove(Changed::Receivers, &request, params, parts).await
}

pub(super) async fn check(
    request: HttpRequest,
    payload: web::Payload,
    parts: Parts,
) -> Result<HttpResponse, Refusal> {
    if let Some(refused) = refuse_other_project(&request) {
        return Ok(refused);
    }
    let body = parts.bodies.receive_change(&request, payload).await?;
    let check = move || {
        let TextRequest { text, .. } = read(&body.bytes)?;
        parts.rules.check_text(AlertText::Receivers, &text)
    };
    Ok(respond(check).await)
}

/// Refuses a change in another project than `default`. These routes are the operator's, so their
/// parts are always those of `default`.
fn refuse_other_project(request: &HttpRequest) -> Option<HttpResponse> {
    names_other_project(request).then(|| refusal(&TextFault::of_other_project()))
}
