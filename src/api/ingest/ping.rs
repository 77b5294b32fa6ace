//! `POST /api/v1/ping`.

use actix_web::{HttpRequest, HttpResponse, web};
use granary_protocol::{PingAnswer, decode_pings};

use super::{IngestParts, Refusal};
use crate::api::body::must_be_json;

/// The maximum size of a body.
const PING_BYTES_MAX: usize = 2 << 20;

pub(super) async fn ping(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<IngestParts>,
) -> HttpResponse {
    match accept(&request, payload, &parts).await {
        Ok(answer) => HttpResponse::Ok().json(answer),
        Err(refusal) => refusal.response(),
    }
}

async fn accept(
    request: &HttpRequest,
    payload: web::Payload,
    parts: &IngestParts,
) -> Result<PingAnswer, Refusal> {
    must_be_json(request)?;
    let body = parts.bodies.receive_query(request, payload, PING_BYTES_MAX).await?;
    let pings = decode_pings(&body.bytes).map_err(Refusal::Malformed)?;
    let answer = parts.hosts.ping(pings).await;
    parts.metrics.pings_accepted.inc_by(answer.accepted);
    parts.metrics.pings_refused.inc_by(answer.refused.len() as u64);
    Ok(answer)
}
