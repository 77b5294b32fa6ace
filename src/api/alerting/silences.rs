//! `GET` and `POST /api/v2/silences`, `GET` and `DELETE /api/v2/silence/{id}`, as Alertmanager has them;
//! and `recurring`, which is Granary's own: of such a silence the window that is under way or comes next
//! is shown where Alertmanager's clients look.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::{AlertingParts, fault, params::Params, time};
use crate::{
    alerts::{LabelMatcher, NewSilence, Recurrence, Silence, SilenceFault, SilenceState},
    api::{answer, refusal::Refusal},
    kept::SilencingFault,
    model::UnixMillis,
    store::ObjectRefusal,
};

/// What is posted. Clients send more: what they were shown.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Posted {
    id: Option<String>,
    matchers: Vec<LabelMatcher>,
    starts_at: String,
    ends_at: Option<String>,
    created_by: String,
    comment: String,
    #[serde(default, deserialize_with = "said")]
    #[expect(clippy::option_option, reason = "null is something that is said")]
    recurring: Option<Option<Recurrence>>,
    recurs_from: Option<String>,
    recurs_until: Option<String>,
}

/// What is there is said, also when it is null.
#[expect(clippy::option_option, reason = "null is something that is said")]
fn said<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<Recurrence>>, D::Error> {
    Deserialize::deserialize(from).map(Some)
}

impl Posted {
    /// What recurs is shown with the times of its window, and those of the whole beside them, which
    /// count when they come back.
    fn wanted(mut self) -> Result<NewSilence, SilenceFault> {
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
    let (all, now) = (parts.silences.known(), parts.clock.now());
    let mut shown = Vec::new();
    for (own, state) in all.listed(now, parts.silences.kept_ms()) {
        // A silence has the values and patterns of its matchers where an alert has labels.
        let value = |name: &str| {
            own.matchers.iter().find(|own| own.name() == name).map(LabelMatcher::value)
        };
        if params.asks_for(value) {
            shown.push(silence(own, state, now));
        }
    }
    HttpResponse::Ok().json(shown)
}

pub(super) async fn get(id: web::Path<String>, parts: web::Data<AlertingParts>) -> HttpResponse {
    let (all, now) = (parts.silences.known(), parts.clock.now());
    match all.get(&id) {
        Some(own) => HttpResponse::Ok().json(silence(own, own.state(now), now)),
        None => HttpResponse::NotFound().finish(),
    }
}

pub(super) async fn put(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AlertingParts>,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    let put = move || {
        let posted = serde_json::from_slice::<Posted>(&body.bytes)
            .map_err(|cause| SilenceFault::Invalid(format!("body: {cause}")))?;
        parts.silences.want(posted.wanted()?, parts.clock.now())
    };
    Ok(respond(put, |id| HttpResponse::Ok().json(json!({ "silenceID": id }))).await)
}

pub(super) async fn expire(id: web::Path<String>, parts: web::Data<AlertingParts>) -> HttpResponse {
    let expire = move || parts.silences.expire(&id, parts.clock.now());
    respond(expire, |()| HttpResponse::Ok().finish()).await
}

/// Does away from the HTTP worker what waits for the disk.
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
        SilencingFault::Refused(ObjectRefusal::NoRoom) => StatusCode::INSUFFICIENT_STORAGE,
        SilencingFault::Silence(SilenceFault::Expired(_)) | SilencingFault::Refused(_) => {
            StatusCode::CONFLICT
        }
        SilencingFault::Store(cause) => return answer::store_error(cause),
    };
    fault(status, &cause)
}

fn silence(own: &Silence, state: SilenceState, now: UnixMillis) -> Value {
    let window = own.window(now);
    let mut shown = json!({
        "id": own.id,
        "status": { "state": state.as_str() },
        "matchers": own.matchers,
        "startsAt": time(window.start),
        "endsAt": time(window.end),
        "updatedAt": time(UnixMillis(own.updated_at)),
        "createdBy": own.created_by,
        "comment": own.comment,
    });
    if let (Some(recurring), Some(shown)) = (&own.recurring, shown.as_object_mut()) {
        shown.insert("recurring".to_owned(), json!(recurring));
        // Of the whole, beside those of its window.
        shown.insert("recursFrom".to_owned(), json!(time(UnixMillis(own.starts_at))));
        shown.insert("recursUntil".to_owned(), json!(time(UnixMillis(own.ends_at))));
    }
    shown
}
