//! The text of receivers: `GET`, `PUT` and `DELETE` of `/api/v1/notifications`, and
//! `POST /api/v1/notifications/check`.

use actix_web::{HttpRequest, HttpResponse, web};

use super::texts::{Changed, DeleteQuery, Parts, TextRequest, read, remove, respond, save};
use crate::{api::refusal::Refusal, kept::AlertText};

pub(super) async fn get(parts: Parts) -> HttpResponse {
    respond(move || Ok(parts.rules.text(AlertText::Receivers)?)).await
}

pub(super) async fn put(
    request: HttpRequest,
    payload: web::Payload,
    parts: Parts,
) -> Result<HttpResponse, Refusal> {
    save(Changed::Receivers, &request, payload, parts).await
}

pub(super) async fn delete(params: DeleteQuery, parts: Parts) -> HttpResponse {
    remove(Changed::Receivers, params, parts).await
}

pub(super) async fn check(
    request: HttpRequest,
    payload: web::Payload,
    parts: Parts,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    let check = move || {
        let TextRequest { text, .. } = read(&body.bytes)?;
        parts.rules.check_text(AlertText::Receivers, &text)
    };
    Ok(respond(check).await)
}
