//! `POST /api/v1/admin/preallocate`

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use parking_lot::Mutex;
use serde::Deserialize;

use super::series::{KeyParts, read};
use crate::{
    api::{AdminParts, answer, query::range_between},
    query::{self, PreallocateRequest, QueryError},
};

/// Held while a request is processed: one at a time, so that requests never take all threads of
/// metrics and queries.
static RUNNING: Mutex<()> = Mutex::new(());

fn busy() -> QueryError {
    QueryError::Busy("another request preallocates documents: retry when it is complete".into())
}

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
    let moment = parts.clock.moment();
    if moment.is_doubted() {
        let message = "the clock is doubted, and documents of a wrong time would stay until their \
                       retention: correct the clock, or run `granary clock confirm`";
        return answer::error(StatusCode::SERVICE_UNAVAILABLE, "clock", message);
    }
    let now = moment.clock;
    let range = match range_between(body.start.as_deref(), &body.end, now) {
        Ok(range) => range,
        Err(cause) => return answer::query_error(&cause),
    };
    let PreallocateBody { selector, resolutions, .. } = body;
    let request = PreallocateRequest { selector: selector.selector(), range, resolutions };
    let preallocate = web::block(move || {
        let _running = RUNNING.try_lock()?;
        Some(query::preallocate(&parts.store, &request, now))
    });
    match preallocate.await.map(|done| done.unwrap_or_else(|| Err(busy()))) {
        Ok(Ok(done)) => HttpResponse::Ok().json(done),
        Ok(Err(cause)) => answer::query_error(&cause),
        Err(cause) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause),
    }
}
