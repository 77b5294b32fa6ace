//! `POST /api/v1/ingest`.

use actix_web::{HttpRequest, HttpResponse, web};
use granary_protocol::IngestAnswer;

use super::IngestParts;
use crate::{
    actors::{Collect, Encoding},
    api::{body, refusal::Refusal},
    clock::Stopwatch,
    telemetry::IngestOutcome,
};

pub(super) async fn ingest(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<IngestParts>,
) -> HttpResponse {
    let watch = Stopwatch::start();
    let (outcome, response) = match accept(&request, payload, &parts).await {
        Ok(answer) => (IngestOutcome::Acknowledged, HttpResponse::Ok().json(answer)),
        Err(refusal) => (refusal.outcome(), refusal.response()),
    };
    parts.metrics.ingest_requests.with_label_values(&[outcome.as_str()]).inc();
    parts.metrics.ingest_request_duration.observe(watch.seconds());
    response
}

async fn accept(
    request: &HttpRequest,
    payload: web::Payload,
    parts: &IngestParts,
) -> Result<IngestAnswer, Refusal> {
    let encoding = match body::media_type(request).as_deref() {
        Some("application/json") => Encoding::Json,
        Some("application/bson" | "application/octet-stream") => Encoding::Bson,
        other => {
            return Err(Refusal::UnknownMediaType(format!(
                "Content-Type: {} does not say how the batches are written; use application/json \
                 or application/bson",
                other.unwrap_or("(none)")
            )));
        }
    };
    let body = parts.bodies.receive(request, payload, "identity").await?;
    let collector = parts.collectors.of(&body.bytes);
    let collect = Collect { body: body.bytes, encoding, memory: body.memory };
    let collected = collector.send(collect).await.map_err(|_| Refusal::Stopping)?;
    collected.map_err(Refusal::Collect)
}
