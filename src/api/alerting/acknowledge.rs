//! `POST /api/v1/alerts/ack` and `/api/v1/alerts/unack`: acknowledge alerts, or withdraw their
//! acknowledgement.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::Deserialize;
use serde_json::json;

use super::AlertingParts;
use crate::{
    alerts::{Acknowledgement, LabelSet},
    api::{
        answer,
        caller::{caller_name, note_object},
    },
    kept::{Acknowledge, AcknowledgeFault},
    model::UnixMillis,
};

/// The maximum length of a name.
const BY_BYTES_MAX: usize = 256;
/// The maximum length of a comment.
const COMMENT_BYTES_MAX: usize = 1024;

/// The maximum duration of an acknowledgement that has an end.
const UNTIL_MS_MAX: i64 = 366 * 86_400_000;

/// The labels of the alerts and the person who acknowledges them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AcknowledgeRequest {
    labels: LabelSet,
    #[serde(default)]
    by: String,
    #[serde(default)]
    comment: String,
    /// The end of the acknowledgement; without it, the acknowledgement ends with the alerts.
    until: Option<String>,
}

pub(super) async fn acknowledge(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AlertingParts>,
) -> HttpResponse {
    let caller = caller_name(&request);
    change(&request, payload, &parts, |mut posted| {
        posted.by = caller.unwrap_or(posted.by);
        for (name, text, bytes_max) in
            [("by", &posted.by, BY_BYTES_MAX), ("comment", &posted.comment, COMMENT_BYTES_MAX)]
        {
            if text.len() > bytes_max || text.contains(char::is_control) {
                return Err(format!("{name}: use one line of at most {bytes_max} bytes"));
            }
        }
        if posted.by.trim().is_empty() {
            return Err("by: the name is empty".to_owned());
        }
        let now = parts.clock.now();
        let until = posted.until.map(|text| end(&text, now)).transpose()?;
        Ok(Some(Acknowledgement { by: posted.by, comment: posted.comment, at: now.0, until }))
    })
    .await
}

/// Parses the end of an acknowledgement.
fn end(text: &str, now: UnixMillis) -> Result<i64, String> {
    let until = UnixMillis::parse(text).map_err(|problem| format!("until: {problem}"))?;
    if !(1..=UNTIL_MS_MAX).contains(&until.since(now)) {
        return Err(format!("until: {text:?} is not within the next 366 days"));
    }
    Ok(until.0)
}

pub(super) async fn withdraw(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AlertingParts>,
) -> HttpResponse {
    change(&request, payload, &parts, |_| Ok(None)).await
}

async fn change(
    request: &HttpRequest,
    payload: web::Payload,
    parts: &AlertingParts,
    acknowledgement: impl FnOnce(AcknowledgeRequest) -> Result<Option<Acknowledgement>, String>,
) -> HttpResponse {
    let body = match parts.bodies.receive_change(request, payload).await {
        Ok(body) => body,
        Err(refusal) => return refusal.response(),
    };
    let invalid = |message: String| answer::error(StatusCode::BAD_REQUEST, "invalid", message);
    let posted = match serde_json::from_slice::<AcknowledgeRequest>(&body.bytes) {
        Ok(posted) if posted.labels.is_empty() => {
            return invalid("labels: at least one label is required, such as alertname".to_owned());
        }
        Ok(posted) => posted,
        Err(cause) => return invalid(format!("body: {cause}")),
    };
    let labels = posted.labels.clone();
    note_object(request, &serde_json::to_string(&labels).unwrap_or_default());
    let change = match acknowledgement(posted) {
        Ok(by) => Acknowledge { labels, by },
        Err(message) => return invalid(message),
    };
    match parts.rules.acknowledge(change).await {
        Ok(alerts) => HttpResponse::Ok().json(json!({ "alerts": alerts })),
        Err(cause) => {
            let (status, word) = match &cause {
                AcknowledgeFault::NotFound => (StatusCode::NOT_FOUND, "not_found"),
                AcknowledgeFault::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
                AcknowledgeFault::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
                AcknowledgeFault::Unstored(_) => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
            };
            answer::error(status, word, cause)
        }
    }
}
