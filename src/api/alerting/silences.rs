//! `GET` and `POST /api/v2/silences`, `GET` and `DELETE /api/v2/silence/{id}`, as in Alertmanager,
//! plus `recurring`. A recurring silence shows its current or next window as `startsAt` and
//! `endsAt`, where Alertmanager's clients expect times.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::{AlertingParts, fault, params::Params, time};
use crate::{
    alerts::{LabelMatcher, NewSilence, Recurrence, Silence, SilenceFault, SilenceState},
    api::{
        answer,
        caller::{caller_name, note_object},
        refusal::Refusal,
    },
    kept::SilencingFault,
    model::UnixMillis,
    store::ObjectRefusal,
};

/// A posted silence. Clients that change a silence also send back all other fields of the response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostedSilence {
    id: Option<String>,
    matchers: Vec<LabelMatcher>,
    starts_at: String,
    ends_at: Option<String>,
    created_by: String,
    comment: String,
    #[serde(default, deserialize_with = "present")]
    #[expect(clippy::option_option, reason = "null differs from a missing field")]
    recurring: Option<Option<Recurrence>>,
    recurs_from: Option<String>,
    recurs_until: Option<String>,
}

/// Deserializes a field that is present, possibly as null.
#[expect(clippy::option_option, reason = "null differs from a missing field")]
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<Recurrence>>, D::Error> {
    Deserialize::deserialize(from).map(Some)
}

impl PostedSilence {
    /// Returns the silence to store. Responses show a recurring silence with the times of its
    /// window; clients send back the times of the silence itself in `recursFrom` and `recursUntil`.
    fn into_new_silence(mut self) -> Result<NewSilence, SilenceFault> {
        if matches!(self.recurring, Some(Some(_))) {
            self.starts_at = self.recurs_from.unwrap_or(self.starts_at);
            self.ends_at = self.recurs_until.or(self.ends_at);
        }
        let time = |name: &str, text: &str| {
            let read = text.parse::<jiff::Timestamp>();
            let read = read.map(|at| UnixMillis(at.as_millisecond()));
            read.map_err(|cause| SilenceFault::Invalid(format!("{name}: {cause}")))
        };
        let ends_at = match &self.ends_at {
            Some(text) => time("endsAt", text)?.min(UnixMillis::MAX),
            None if matches!(self.recurring, Some(Some(_))) => UnixMillis::MAX,
            None => return Err(SilenceFault::Invalid("endsAt is missing".to_owned())),
        };
        Ok(NewSilence {
            id: self.id.filter(|id| !id.is_empty()),
            matchers: self.matchers,
            starts_at: time("startsAt", &self.starts_at)?,
            ends_at,
            created_by: self.created_by,
            comment: self.comment,
            recurring: self.recurring,
        })
    }
}

pub(super) async fn list(request: HttpRequest, parts: web::Data<AlertingParts>) -> HttpResponse {
    let params = match Params::read(request.query_string()) {
        Ok(params) => params,
        Err(message) => return fault(StatusCode::BAD_REQUEST, &message),
    };
    let (all, now) = (parts.silences.current(), parts.clock.now());
    let mut json = Vec::new();
    for (silence, state) in all.list(now, parts.silences.kept_ms()) {
        // A silence is matched by the values and patterns of its matchers instead of labels.
        let value = |name: &str| {
            silence.matchers.iter().find(|matcher| matcher.name() == name).map(LabelMatcher::value)
        };
        if params.accepts(value) {
            json.push(to_json(silence, state, now));
        }
    }
    HttpResponse::Ok().json(json)
}

pub(super) async fn get(id: web::Path<String>, parts: web::Data<AlertingParts>) -> HttpResponse {
    let (all, now) = (parts.silences.current(), parts.clock.now());
    match all.get(&id) {
        Some(silence) => HttpResponse::Ok().json(to_json(silence, silence.state(now), now)),
        None => HttpResponse::NotFound().finish(),
    }
}

pub(super) async fn put(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AlertingParts>,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    let caller = caller_name(&request);
    let put = move || {
        let mut posted = serde_json::from_slice::<PostedSilence>(&body.bytes)
            .map_err(|cause| SilenceFault::Invalid(format!("body: {cause}")))?;
        posted.created_by = caller.unwrap_or(posted.created_by);
        parts.silences.create_or_change(posted.into_new_silence()?, parts.clock.now())
    };
    let answer = |id: String| {
        note_object(&request, &id);
        HttpResponse::Ok().json(json!({ "silenceID": id }))
    };
    Ok(respond(put, answer).await)
}

pub(super) async fn expire(id: web::Path<String>, parts: web::Data<AlertingParts>) -> HttpResponse {
    let expire = move || parts.silences.expire(&id, parts.clock.now());
    respond(expire, |()| HttpResponse::Ok().finish()).await
}

/// Runs work that waits for the disk outside of the HTTP worker.
async fn respond<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SilencingFault> + Send + 'static,
    answer: impl FnOnce(T) -> HttpResponse,
) -> HttpResponse {
    match web::block(work).await {
        Ok(Ok(done)) => answer(done),
        Ok(Err(cause)) => refusal(&cause),
        Err(cause) => fault(StatusCode::INTERNAL_SERVER_ERROR, &cause),
    }
}

fn refusal(cause: &SilencingFault) -> HttpResponse {
    let status = match cause {
        SilencingFault::Silence(SilenceFault::Invalid(_)) => StatusCode::BAD_REQUEST,
        SilencingFault::Silence(SilenceFault::NotFound(_)) => StatusCode::NOT_FOUND,
        SilencingFault::Refused(ObjectRefusal::QuotaReached) => StatusCode::INSUFFICIENT_STORAGE,
        SilencingFault::Silence(SilenceFault::Expired(_)) | SilencingFault::Refused(_) => {
            StatusCode::CONFLICT
        }
        SilencingFault::Store(cause) => return answer::store_error(cause),
    };
    fault(status, &cause)
}

fn to_json(silence: &Silence, state: SilenceState, now: UnixMillis) -> Value {
    let window = silence.window(now);
    let mut json = json!({
        "id": silence.id,
        "status": { "state": state.as_str() },
        "matchers": silence.matchers,
        "startsAt": time(window.start),
        "endsAt": time(window.end),
        "updatedAt": time(UnixMillis(silence.updated_at)),
        "createdBy": silence.created_by,
        "comment": silence.comment,
    });
    if let (Some(recurring), Some(json)) = (&silence.recurring, json.as_object_mut()) {
        json.insert("recurring".to_owned(), json!(recurring));
        // The times of the silence itself, in addition to the times of its window.
        json.insert("recursFrom".to_owned(), json!(time(UnixMillis(silence.starts_at))));
        json.insert("recursUntil".to_owned(), json!(time(UnixMillis(silence.ends_at))));
    }
    json
}
