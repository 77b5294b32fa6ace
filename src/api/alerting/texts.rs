//! The texts of rules: `GET /api/v1/rule-files`; `GET`, `PUT` and `DELETE` of
//! `/api/v1/rule-files/{name}`; `POST /api/v1/rule-files/check`.

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{self, Query},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::AlertingParts;
use crate::{
    api::{answer, caller::note_object, objects, refusal::Refusal},
    kept::{AlertText, ObjectFault, TextFault, TextFaultAnswer},
    query::QueryError,
};

/// The body of a change, or of a check without a version.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextRequest {
    /// The name of the text, in a check of rules.
    pub(super) name: Option<String>,
    /// The version that a change replaces; none for a new text.
    pub(super) version: Option<u64>,
    pub(super) text: String,
}

/// `DELETE /api/v1/rule-files/{name}?version=7`; a damaged text has no version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteParams {
    version: Option<u64>,
}

pub(super) type DeleteQuery = Result<Query<DeleteParams>, actix_web::Error>;
pub(super) type Parts = web::Data<AlertingParts>;

/// The owned identity of a text.
#[derive(Debug, Clone)]
pub(super) enum Changed {
    Rules(String),
    Receivers,
}

impl Changed {
    fn text(&self) -> AlertText<'_> {
        match self {
            Self::Rules(name) => AlertText::Rules(name),
            Self::Receivers => AlertText::Receivers,
        }
    }
}

pub(super) async fn list(parts: Parts) -> HttpResponse {
    respond(move || Ok(parts.rules.texts())).await
}

pub(super) async fn get(name: web::Path<String>, parts: Parts) -> HttpResponse {
    respond(move || Ok(parts.rules.text(AlertText::Rules(&name))?)).await
}

pub(super) async fn put(
    name: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
    parts: Parts,
) -> Result<HttpResponse, Refusal> {
    save(Changed::Rules(name.into_inner()), &request, payload, parts).await
}

pub(super) async fn delete(
    name: web::Path<String>,
    request: HttpRequest,
    params: DeleteQuery,
    parts: Parts,
) -> HttpResponse {
    remove(Changed::Rules(name.into_inner()), &request, params, parts).await
}

pub(super) async fn check(
    request: HttpRequest,
    payload: web::Payload,
    parts: Parts,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    let check = move || {
        let TextRequest { name, text, .. } = read(&body.bytes)?;
        let name = name.ok_or_else(|| ObjectFault::Invalid("body: name is missing".to_owned()))?;
        parts.rules.check_text(AlertText::Rules(&name), &text)
    };
    Ok(respond(check).await)
}

pub(super) async fn save(
    changed: Changed,
    request: &HttpRequest,
    payload: web::Payload,
    parts: Parts,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(request, payload).await?;
    note_object(request, changed.text().name());
    let save = move || {
        let TextRequest { version, text, .. } = read(&body.bytes)?;
        parts.rules.put_text(changed.text(), version, &text, parts.clock.now())
    };
    Ok(respond(save).await)
}

pub(super) async fn remove(
    changed: Changed,
    request: &HttpRequest,
    params: DeleteQuery,
    parts: Parts,
) -> HttpResponse {
    note_object(request, changed.text().name());
    let DeleteParams { version } = match params {
        Ok(params) => params.into_inner(),
        Err(cause) => return answer::query_error(&QueryError::Invalid(cause.to_string())),
    };
    let delete = move || parts.rules.delete_text(changed.text(), version);
    match web::block(delete).await {
        Ok(Ok(())) => HttpResponse::NoContent().finish(),
        Ok(Err(fault)) => refusal(&fault),
        Err(cause) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause),
    }
}

pub(super) fn read(body: &[u8]) -> Result<TextRequest, ObjectFault> {
    serde_json::from_slice(body).map_err(|cause| ObjectFault::Invalid(format!("body: {cause}")))
}

/// Runs work that waits for the disk outside of the HTTP worker, and answers with its result.
pub(super) async fn respond<T: Serialize + Send + 'static>(
    work: impl FnOnce() -> Result<T, TextFault> + Send + 'static,
) -> HttpResponse {
    match web::block(work).await {
        Ok(Ok(done)) => HttpResponse::Ok().json(done),
        Ok(Err(fault)) => refusal(&fault),
        Err(cause) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause),
    }
}

pub(super) fn refusal(fault: &TextFault) -> HttpResponse {
    match fault {
        TextFault::Unusable(faults) => HttpResponse::UnprocessableEntity().json(json!({
            "error": "invalid",
            "message": fault.to_string(),
            "faults": TextFaultAnswer::all(faults),
        })),
        TextFault::TooLarge(_) => answer::error(StatusCode::PAYLOAD_TOO_LARGE, "too_large", fault),
        TextFault::NotEditable(reason) => {
            answer::error(StatusCode::CONFLICT, "not_editable", reason)
        }
        TextFault::Object(fault) => objects::refusal(fault),
    }
}
