//! `POST /api/v1/ingest`.

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{HeaderName, HeaderValue},
    web,
};
use granary_protocol::{ACCEPT_POST, IngestAnswer, PACKED_MEDIA_TYPE};

use super::{IngestParts, counted};
use crate::{
    actors::CollectBatches,
    api::{body, refusal::Refusal},
    ingest::protocol::BatchEncoding,
};

pub(super) async fn ingest(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<IngestParts>,
) -> HttpResponse {
    let accepted = async {
        let answer = accept(&request, payload, &parts).await?;
        Ok(HttpResponse::Ok().json(answer))
    };
    let mut response = counted(&parts.metrics, accepted, Refusal::response).await;
    // Agents pack for daemons that say that they read it.
    response
        .headers_mut()
        .insert(HeaderName::from_static(ACCEPT_POST), HeaderValue::from_static(PACKED_MEDIA_TYPE));
    response
}

async fn accept(
    request: &HttpRequest,
    payload: web::Payload,
    parts: &IngestParts,
) -> Result<IngestAnswer, Refusal> {
    let encoding = match body::media_type(request).as_deref() {
        Some("application/json") => BatchEncoding::Json,
        Some("application/bson" | "application/octet-stream") => BatchEncoding::Bson,
        Some(PACKED_MEDIA_TYPE) => BatchEncoding::Packed,
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
    let collect = CollectBatches { body: body.bytes, encoding, memory: body.memory };
    let collected = collector.send(collect).await.map_err(|_| Refusal::Stopping)?;
    collected.map_err(Refusal::Collect)
}
