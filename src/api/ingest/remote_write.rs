//! `POST /api/v1/write`: Prometheus remote write 1.0 and 2.0 (prometheus.io/docs/specs/prw).
//!
//! A request is answered with 204 once its samples are durable, even when some samples were
//! refused for good: Prometheus and vmagent drop the whole request on any other 4xx and would
//! count accepted samples as lost. `/metrics` counts refused samples, and senders of 2.0 read the
//! number of written samples from the headers.

use actix_web::{HttpRequest, HttpResponse, http::header};

use super::rows::{RowsRequest, respond};
use crate::{
    actors::RowsAnswer,
    api::refusal::Refusal,
    ingest::{protocol::RowProtocol, remote_write::Version},
};

pub(super) async fn write(received: RowsRequest) -> HttpResponse {
    let (request, ..) = &received;
    let protocol = version(request).map(RowProtocol::RemoteWrite);
    respond(received, protocol, "snappy", |answer| acknowledge(&answer)).await
}

/// Returns the message version that the `Content-Type` names, by default 1.0.
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
            "Content-Type: {text} is not supported; use application/x-protobuf with \
             proto=prometheus.WriteRequest or io.prometheus.write.v2.Request"
        ))),
    }
}

fn acknowledge(answer: &RowsAnswer) -> HttpResponse {
    // Duplicates were written by an earlier request.
    let written = answer.answer.accepted + answer.answer.duplicates;
    let histograms = answer.contents.histograms.min(written);
    HttpResponse::NoContent()
        .insert_header(("X-Prometheus-Remote-Write-Samples-Written", written - histograms))
        .insert_header(("X-Prometheus-Remote-Write-Histograms-Written", histograms))
        .insert_header(("X-Prometheus-Remote-Write-Exemplars-Written", 0))
        .finish()
}
