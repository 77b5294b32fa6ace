//! `DELETE /api/v1/series`, `POST /api/v1/admin/series/delete`, `.../rename` and
//! `.../merge`.

use std::collections::BTreeMap;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web::{self, Query},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::erasure;
use crate::{
    api::{AdminParts, answer, caller::note_object, query::selector, refusal},
    query::{self, ChangeAnswer, QueryError, Selector},
    store::{ChangeAction, ChangeRefusal, Renaming, SeriesChange},
};

/// `DELETE /api/v1/series?metric=...&tags=...`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteParams {
    metric: Option<String>,
    /// `host=web1,core=0`
    tags: Option<String>,
    /// RFC 3339, a date, or Unix seconds. With `start` and `end`, only samples are deleted.
    start: Option<String>,
    /// Exclusive.
    end: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteBody {
    selector: KeyParts,
    /// The start of the samples, see [`DeleteParams`].
    start: Option<TimeValue>,
    end: Option<TimeValue>,
    #[serde(default)]
    dry_run: bool,
}

/// A time in a body: a text as in parameters, or a number of Unix seconds.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum TimeValue {
    Text(String),
    Number(serde_json::Number),
}

impl From<TimeValue> for String {
    fn from(time: TimeValue) -> Self {
        match time {
            TimeValue::Text(text) => text,
            TimeValue::Number(number) => number.to_string(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RenameBody {
    selector: KeyParts,
    set: KeyParts,
    #[serde(default)]
    dry_run: bool,
}

/// A metric and tags, each of which is optional.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyParts {
    metric: Option<String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

impl KeyParts {
    pub(super) fn selector(self) -> Selector {
        Selector { metric: self.metric, tags: self.tags.into_iter().collect() }
    }
}

pub(super) async fn delete_matching(
    request: HttpRequest,
    params: Result<Query<DeleteParams>, actix_web::Error>,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    let params = match params {
        Ok(params) => params.into_inner(),
        Err(cause) => return answer::query_error(&QueryError::Invalid(cause.to_string())),
    };
    // A range in an ignored body would delete whole series.
    if has_body(&request) {
        let problem = "this request has no body: use parameters of the URL, such as start and end";
        return answer::query_error(&QueryError::Invalid(problem.to_owned()));
    }
    match selector(params.metric.as_deref(), params.tags.as_deref()) {
        Ok(selector) => {
            let DeleteParams { start, end, dry_run, .. } = params;
            delete_or_erase(&selector, (start, end), dry_run, parts).await
        }
        Err(cause) => answer::query_error(&cause),
    }
}

fn has_body(request: &HttpRequest) -> bool {
    let headers = request.headers();
    let length = headers.get(header::CONTENT_LENGTH);
    headers.contains_key(header::TRANSFER_ENCODING) || length.is_some_and(|length| length != "0")
}

/// Deletes series or, with a range, erases their samples.
async fn delete_or_erase(
    selector: &Selector,
    (start, end): (Option<String>, Option<String>),
    dry_run: bool,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    match erasure::range(start.as_deref(), end.as_deref(), parts.clock.moment().clock) {
        Ok(None) => respond(selector, ChangeAction::Delete, dry_run, parts).await,
        Ok(Some(range)) => erasure::erase(selector, range, dry_run, parts).await,
        Err(cause) => answer::query_error(&cause),
    }
}

pub(super) async fn delete(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    match read::<DeleteBody>(&request, payload, &parts).await {
        Ok(DeleteBody { selector, start, end, dry_run }) => {
            let range = (start.map(String::from), end.map(String::from));
            delete_or_erase(&selector.selector(), range, dry_run, parts).await
        }
        Err(refused) => refused,
    }
}

pub(super) async fn rename(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    set_keys(&request, payload, parts, ChangeAction::Rename).await
}

pub(super) async fn merge(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    set_keys(&request, payload, parts, ChangeAction::Merge).await
}

/// Changes parts of the keys of matching series.
async fn set_keys(
    request: &HttpRequest,
    payload: web::Payload,
    parts: web::Data<AdminParts>,
    action: impl FnOnce(Renaming) -> ChangeAction,
) -> HttpResponse {
    match read::<RenameBody>(request, payload, &parts).await {
        Ok(body) => {
            let Selector { metric, tags } = body.set.selector();
            let renaming = Renaming { metric, tags, limits: parts.series_limits };
            respond(&body.selector.selector(), action(renaming), body.dry_run, parts).await
        }
        Err(refused) => refused,
    }
}

pub(super) async fn read<T: DeserializeOwned>(
    request: &HttpRequest,
    payload: web::Payload,
    parts: &AdminParts,
) -> Result<T, HttpResponse> {
    // An ignored parameter could be the one that limits the change.
    if !request.query_string().is_empty() {
        let problem = "this request has no parameters in the URL: put them into the body";
        return Err(answer::query_error(&QueryError::Invalid(problem.to_owned())));
    }
    let body = parts.bodies.receive_change(request, payload).await;
    let body = body.map_err(|refusal| refusal.response())?;
    note_object(request, &String::from_utf8_lossy(&body.bytes));
    serde_json::from_slice(&body.bytes)
        .map_err(|cause| answer::query_error(&QueryError::Invalid(format!("body: {cause}"))))
}

async fn respond(
    selector: &Selector,
    action: ChangeAction,
    dry_run: bool,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    let change = SeriesChange { matchers: selector.matchers(), action };
    let outcome = if dry_run {
        let preview =
            web::block(move || query::preview(&parts.store, &change, &parts.query_limits.get()));
        match preview.await {
            Ok(outcome) => outcome,
            Err(cause) => {
                return answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause);
            }
        }
    } else {
        match parts.writer.change(change).await {
            Ok(outcome) => outcome.map(|total| ChangeAnswer { total, ..ChangeAnswer::default() }),
            Err(fault) => return refusal::write_fault(&fault),
        }
    };
    match outcome {
        Ok(done) => HttpResponse::Ok().json(done),
        Err(
            cause @ (ChangeRefusal::Conflict { .. }
            | ChangeRefusal::Unlike { .. }
            | ChangeRefusal::Deleted
            | ChangeRefusal::Interleaved { .. }
            | ChangeRefusal::TooManyParts { .. }),
        ) => answer::error(StatusCode::CONFLICT, "conflict", cause),
        Err(
            cause @ (ChangeRefusal::NoCondition
            | ChangeRefusal::NothingSet
            | ChangeRefusal::BadKey { .. }),
        ) => answer::error(StatusCode::BAD_REQUEST, "invalid", cause),
    }
}
