//! `POST /api/v2/alerts`: alerts of other programs, as Prometheus servers and Loki send them to
//! Alertmanagers.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};

use super::{AlertingParts, fault};
use crate::{
    alerts::{PostOutcome, PostableAlert, RESOLVE_TIMEOUT_MS},
    api::{body::FORM_BYTES_MAX, refusal::Refusal},
};

/// Stores posted alerts. When some do not fit, the response is 503, so that the sender retries.
pub(super) async fn put(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AlertingParts>,
) -> HttpResponse {
    let body = match parts.bodies.receive_change(&request, payload).await {
        Ok(body) => body,
        Err(Refusal::TooLong { .. }) => {
            let message = format!("more than {FORM_BYTES_MAX} bytes: send fewer alerts at once");
            return fault(StatusCode::PAYLOAD_TOO_LARGE, &message);
        }
        Err(refusal) => return refusal.response(),
    };
    let put = move || {
        let alerts = serde_json::from_slice::<Vec<PostableAlert>>(&body.bytes);
        let alerts = alerts.map_err(|cause| format!("body: {cause}"))?;
        let routing = parts.rules.routing();
        let timeout_ms = routing.map_or(RESOLVE_TIMEOUT_MS, |routing| routing.resolve_timeout_ms);
        Ok::<_, String>(parts.posted.put(alerts, timeout_ms, parts.clock.now()))
    };
    match web::block(put).await {
        Ok(Ok(PostOutcome { invalid: 0, refused: 0, .. })) => HttpResponse::Ok().finish(),
        Ok(Ok(PostOutcome { invalid: 0, refused, accepted, .. })) => {
            tracing::warn!(refused, accepted, "too many alerts of other programs");
            let message = format!(
                "{refused} alerts exceed the limit of alerts of other programs; resolve some \
                 alerts and retry"
            );
            fault(StatusCode::SERVICE_UNAVAILABLE, &message)
        }
        Ok(Ok(outcome)) => fault(StatusCode::BAD_REQUEST, &outcome.faults.join("; ")),
        Ok(Err(cause)) => fault(StatusCode::BAD_REQUEST, &cause),
        Err(cause) => fault(StatusCode::INTERNAL_SERVER_ERROR, &cause),
    }
}
