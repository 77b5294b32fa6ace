//! `POST /api/v1/ingest`: batches. `POST /api/v1/update`: updates in MongoDB's syntax.

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{HeaderName, HeaderValue},
    web,
};
use granary_protocol::{ACCEPT_POST, IngestAnswer, PACKED_HISTOGRAMS, PACKED_MEDIA_TYPE};

use super::{IngestParts, answer_and_count};
use crate::{
    actors::CollectBatches,
    api::{body, caller::caller, refusal::Refusal},
    ingest::protocol::BatchEncoding,
};

pub(super) async fn ingest(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<IngestParts>,
) -> HttpResponse {
    let accepted = async {
        let encoding = encoding(&request)?;
        let answer = accept(&request, payload, &parts, encoding).await?;
        Ok(HttpResponse::Ok().json(answer))
    };
    let mut response = answer_and_count(&parts.metrics, accepted, Refusal::response).await;
    // Agents use the packed encoding when the daemon announces it.
    for announced in [PACKED_MEDIA_TYPE, PACKED_HISTOGRAMS] {
        let (name, value) = (HeaderName::from_static(ACCEPT_POST), announced);
        response.headers_mut().append(name, HeaderValue::from_static(value));
    }
    response
}

pub(super) async fn update(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<IngestParts>,
) -> HttpResponse {
    let accepted = async {
        // Pages of other sites cannot send these types.
        match body::media_type(&request).as_deref() {
            Some("application/json" | "application/javascript") => {}
            other => {
                return Err(Refusal::UnknownMediaType(format!(
                    "Content-Type: {} is not supported for updates; use application/json for \
                     commands and for shell calls",
                    other.unwrap_or("(none)")
                )));
            }
        }
        let answer = accept(&request, payload, &parts, BatchEncoding::Updates).await?;
        Ok(HttpResponse::Ok().json(answer))
    };
    answer_and_count(&parts.metrics, accepted, Refusal::response).await
}

fn encoding(request: &HttpRequest) -> Result<BatchEncoding, Refusal> {
    match body::media_type(request).as_deref() {
        Some("application/json") => Ok(BatchEncoding::Json),
        Some("application/bson" | "application/octet-stream") => Ok(BatchEncoding::Bson),
        Some(PACKED_MEDIA_TYPE) => Ok(BatchEncoding::Packed),
        other => Err(Refusal::UnknownMediaType(format!(
            "Content-Type: {} is not an encoding of batches; use application/json or \
             application/bson",
            other.unwrap_or("(none)")
        ))),
    }
}

async fn accept(
    request: &HttpRequest,
    payload: web::Payload,
    parts: &IngestParts,
    encoding: BatchEncoding,
) -> Result<IngestAnswer, Refusal> {
    let body = match encoding {
        BatchEncoding::Packed => parts.bodies.receive_packed(request, payload).await?,
        BatchEncoding::Bson | BatchEncoding::Json | BatchEncoding::Updates => {
            parts.bodies.receive(request, payload, "identity").await?
        }
    };
    let collector = parts.collectors.for_body(&body.bytes);
    let senders = caller(request).and_then(|caller| caller.senders());
    let (body, memory) = (body.bytes, body.memory);
    let collect = CollectBatches { body, encoding, decoded: None, is_own: false, senders, memory };
    let collected = collector.send(collect).await.map_err(|_| Refusal::Stopping)?;
    collected.map_err(Refusal::Collect)
}
