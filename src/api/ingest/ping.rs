//! `POST /api/v1/ping`.

use actix_web::{HttpRequest, HttpResponse, web};
use granary_protocol::{Ping, PingAnswer, RefusedPing, decode_pings};

use super::{IngestParts, Refusal};
use crate::{
    access::Caller,
    api::{body::must_be_json, caller::caller},
    model::SenderLimit,
};

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
    let pings = match caller(request).as_ref().and_then(Caller::senders) {
        Some(limit) => pings.into_iter().map(|ping| of_senders(ping?, &limit)).collect(),
        None => pings,
    };
    let answer = parts.hosts.ping(pings).await;
    parts.metrics.pings_accepted.inc_by(answer.accepted);
    parts.metrics.pings_refused.inc_by(answer.refused.len() as u64);
    Ok(answer)
}

/// Refuses a ping whose agent or host is beyond the limit of the caller's key.
fn of_senders(ping: Ping, limit: &SenderLimit) -> Result<Ping, RefusedPing> {
    let host = ping.host.as_ref().unwrap_or(&ping.agent);
    if limit.allows(&ping.agent) && limit.allows(host) {
        return Ok(ping);
    }
    let reason = format!("the key is limited to agents and hosts whose name {limit}");
    Err(RefusedPing { agent: ping.agent, reason })
}
