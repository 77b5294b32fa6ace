//! `POST /api/v1/write`: Prometheus remote write 1.0 and 2.0 (prometheus.io/docs/specs/prw).
//!
//! A request is answered 204 when its samples are durable, also when some were refused for good:
//! Prometheus and vmagent drop a whole request on any other 4xx and would count what was kept as
//! lost. Refused samples are counted at `/metrics`, and 2.0 senders read the counts written from
//! the headers. What may succeed later is 503, because Prometheus drops on 429 by default.

use actix::Addr;
use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web,
};

use super::{ApiParts, body, refusal::Refusal};
use crate::{
    actors::{CollectForeign, Collector, Foreign, ForeignAnswer},
    ingest::remote_write::Version,
    model::time::Stopwatch,
    telemetry::IngestOutcome,
};

pub(super) async fn write(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<ApiParts>,
    collector: web::Data<Addr<Collector>>,
) -> HttpResponse {
    let watch = Stopwatch::start();
    let (outcome, response) = match accept(&request, payload, &parts, &collector).await {
        Ok(answer) => (IngestOutcome::Acknowledged, acknowledge(&answer)),
        Err(refusal) => (refusal.outcome(), retry_later(refusal.response())),
    };
    parts.metrics.ingest_requests.with_label_values(&[outcome.as_str()]).inc();
    parts.metrics.ingest_request_duration.observe(watch.seconds());
    response
}

async fn accept(
    request: &HttpRequest,
    payload: web::Payload,
    parts: &ApiParts,
    collector: &Addr<Collector>,
) -> Result<ForeignAnswer, Refusal> {
    let version = version(request)?;
    let body = body::receive_as(request, payload, parts, "snappy").await?;
    let peer = request.peer_addr().map(|peer| peer.ip().to_string()).unwrap_or_default();
    let collect = CollectForeign {
        body: body.bytes.clone(),
        foreign: Foreign::RemoteWrite(version),
        sender: format!("remote_write {peer}").into(),
    };
    let collected = collector.send(collect).await.map_err(|_| Refusal::Stopping)?;
    collected.map_err(Refusal::Foreign)
}

/// The message that the `Content-Type` names; 1.0 when it names none.
fn version(request: &HttpRequest) -> Result<Version, Refusal> {
    let header = request.headers().get(header::CONTENT_TYPE);
    let text = header.and_then(|value| value.to_str().ok()).unwrap_or("application/x-protobuf");
    let mut words = text.split(';').map(str::trim);
    let kind = words.next().unwrap_or_default();
    let proto = words.find_map(|word| word.strip_prefix("proto="));
    match (kind.eq_ignore_ascii_case("application/x-protobuf"), proto) {
        (true, None | Some("prometheus.WriteRequest")) => Ok(Version::V1),
        (true, Some("io.prometheus.write.v2.Request")) => Ok(Version::V2),
        _ => Err(Refusal::UnknownMediaType(format!(
            "Content-Type: {text} is not known; use application/x-protobuf with \
             proto=prometheus.WriteRequest or io.prometheus.write.v2.Request"
        ))),
    }
}

fn acknowledge(answer: &ForeignAnswer) -> HttpResponse {
    // Duplicates were written before; to the sender they are written.
    let written = answer.answer.accepted + answer.answer.duplicates;
    HttpResponse::NoContent()
        .insert_header(("X-Prometheus-Remote-Write-Samples-Written", written))
        .insert_header(("X-Prometheus-Remote-Write-Histograms-Written", answer.contents.histograms))
        .insert_header(("X-Prometheus-Remote-Write-Exemplars-Written", 0))
        .finish()
}

fn retry_later(mut response: HttpResponse) -> HttpResponse {
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}
