//! `POST /api/v1/admin/preallocate`

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::Deserialize;

use super::series::{KeyParts, read};
use crate::{
    api::{AdminParts, answer, query::range_between},
    query::{self, PreallocateRequest},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PreallocateBody {
    selector: KeyParts,
    /// RFC 3339, a date, or Unix seconds as text; now by default.
    start: Option<String>,
    /// Exclusive.
    end: String,
    /// Names of granularities; all of them by default.
    #[serde(default)]
    resolutions: Vec<String>,
}

pub(super) async fn preallocate(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    let body = match read::<PreallocateBody>(&request, payload, &parts).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let now = parts.clock.now();
    let range = match range_between(body.start.as_deref(), &body.end, now) {
        Ok(range) => range,
        Err(cause) => return answer::query_error(&cause),
    };
    let PreallocateBody { selector, resolutions, .. } = body;
    let request = PreallocateRequest { selector: selector.selector(), range, resolutions };
    let preallocate = web::block(move || query::preallocate(&parts.store, &request, now));
    match preallocate.await {
        Ok(Ok(done)) => HttpResponse::Ok().json(done),
        Ok(Err(cause)) => answer::query_error(&cause),
        Err(cause) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause),
    }
}
