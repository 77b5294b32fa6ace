//! `GET` and `POST /api/v1/annotations`, `DELETE /api/v1/annotations/{id}`.

use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Query},
};
use serde::Deserialize;
use serde_json::json;

use super::{ObjectsParts, respond};
use crate::{
    api::{
        answer,
        caller::{caller_name, note_object},
        query::selector,
        refusal::Refusal,
    },
    kept::{ANNOTATIONS_ANSWERED_MAX, Annotation, AnnotationsQuery, NewAnnotation, ObjectFault},
    model::UnixMillis,
    query::QueryError,
};

/// `GET /api/v1/annotations?start=...&end=...&tags=host=web1`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    start: Option<String>,
    end: Option<String>,
    tags: Option<String>,
}

impl Params {
    fn to_query(&self) -> Result<AnnotationsQuery, QueryError> {
        let time = |name: &str, text: &Option<String>, default| match text {
            None => Ok(default),
            Some(text) => UnixMillis::parse(text)
                .map_err(|cause| QueryError::Invalid(format!("{name}={cause}"))),
        };
        Ok(AnnotationsQuery {
            start: time("start", &self.start, UnixMillis::MIN)?,
            end: time("end", &self.end, UnixMillis::MAX)?,
            tags: selector(None, self.tags.as_deref())?.tags,
        })
    }
}

pub(super) async fn list(
    params: Result<Query<Params>, actix_web::Error>,
    parts: web::Data<ObjectsParts>,
) -> HttpResponse {
    let params = params.map_err(|cause| QueryError::Invalid(cause.to_string()));
    let to_query = match params.and_then(|params| params.to_query()) {
        Ok(to_query) => to_query,
        Err(cause) => return answer::query_error(&cause),
    };
    let found = move || {
        let range = to_query.start..to_query.end;
        let events = parts.hosts.events(&range, &to_query.tags, ANNOTATIONS_ANSWERED_MAX);
        parts.annotations.list(&to_query, events.into_iter().map(Annotation::from))
    };
    respond(found, |found| HttpResponse::Ok().json(found)).await
}

pub(super) async fn add(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<ObjectsParts>,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    let metrics = parts.metrics.clone();
    let author = caller_name(&request).unwrap_or_default();
    let add = move || {
        let mut new = serde_json::from_slice::<NewAnnotation>(&body.bytes)
            .map_err(|cause| ObjectFault::Invalid(format!("body: {cause}")))?;
        new.author = author;
        parts.annotations.add(new, parts.clock.now())
    };
    let answer = respond(add, |(id, forgotten)| {
        metrics.annotations_forgotten.inc_by(forgotten as u64);
        note_object(&request, &id);
        HttpResponse::Created().json(json!({ "id": id }))
    });
    Ok(answer.await)
}

pub(super) async fn delete(id: web::Path<String>, parts: web::Data<ObjectsParts>) -> HttpResponse {
    let delete = move || parts.annotations.delete(&id);
    respond(delete, |()| HttpResponse::NoContent().finish()).await
}
