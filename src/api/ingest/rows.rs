//! What the foreign protocols over HTTP share: receiving, counting, and the sender's name.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};

use super::IngestParts;
use crate::{
    actors::{CollectForeign, Foreign, ForeignAnswer},
    api::refusal::Refusal,
    clock::Stopwatch,
    telemetry::IngestOutcome,
};

/// A request of a foreign sender and its body, with what it is received by.
pub(super) type ForeignRequest = (HttpRequest, web::Payload, web::Data<IngestParts>);

/// Receives a request, has it written, and answers it. `default_encoding` is what a body without
/// `Content-Encoding` has.
pub(super) async fn respond(
    received: ForeignRequest,
    foreign: Result<Foreign, Refusal>,
    default_encoding: &'static str,
    acknowledge: impl FnOnce(ForeignAnswer) -> HttpResponse,
) -> HttpResponse {
    let watch = Stopwatch::start();
    let (_, _, parts) = &received;
    let metrics = parts.metrics.clone();
    let accepted = match foreign {
        Ok(foreign) => accept(received, foreign, default_encoding).await,
        Err(refusal) => Err(refusal),
    };
    let (outcome, response) = match accepted {
        Ok(answer) => (IngestOutcome::Acknowledged, acknowledge(answer)),
        Err(refusal) => (refusal.outcome(), retry_later(refusal.response())),
    };
    metrics.ingest_requests.with_label_values(&[outcome.as_str()]).inc();
    metrics.ingest_request_duration.observe(watch.seconds());
    response
}

async fn accept(
    (request, payload, parts): ForeignRequest,
    foreign: Foreign,
    default_encoding: &'static str,
) -> Result<ForeignAnswer, Refusal> {
    let body = parts.bodies.receive(&request, payload, default_encoding).await?;
    let peer = request.peer_addr().map(|peer| peer.ip().to_string()).unwrap_or_default();
    let sender = format!("{} {peer}", foreign.protocol().as_str()).into();
    let collector = parts.collectors.of(&body.bytes);
    let collect = CollectForeign { body: body.bytes, foreign, sender, memory: Some(body.memory) };
    let collected = collector.send(collect).await.map_err(|_| Refusal::Stopping)?;
    collected.map_err(Refusal::Foreign)
}

/// What may succeed later is 503: Prometheus drops on 429 unless it is told otherwise.
fn retry_later(mut response: HttpResponse) -> HttpResponse {
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}
