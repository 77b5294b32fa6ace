//! The common part of HTTP protocols whose samples arrive as rows: receiving the request, and
//! naming its sender.
//!
//! Must never know: how a body is read.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};

use super::{IngestParts, answer_and_count};
use crate::{
    actors::{CollectRows, RowsAnswer, protocol_label},
    api::{
        caller::{caller, sender_address},
        refusal::Refusal,
    },
    ingest::protocol::RowProtocol,
};

/// A request with its body and the parts that handle it.
pub(super) type RowsRequest = (HttpRequest, web::Payload, web::Data<IngestParts>);

/// Receives a request, submits its rows, and answers it. `default_encoding` applies without a
/// `Content-Encoding`.
pub(super) async fn respond(
    received: RowsRequest,
    protocol: Result<RowProtocol, Refusal>,
    default_encoding: &'static str,
    acknowledge: impl FnOnce(RowsAnswer) -> HttpResponse,
) -> HttpResponse {
    let metrics = received.2.metrics.clone();
    let accepted = async {
        let answer = accept(received, protocol?, default_encoding).await?;
        Ok(acknowledge(answer))
    };
    answer_and_count(&metrics, accepted, retry_later).await
}

async fn accept(
    (request, payload, parts): RowsRequest,
    protocol: RowProtocol,
    default_encoding: &'static str,
) -> Result<RowsAnswer, Refusal> {
    let body = parts.bodies.receive(&request, payload, default_encoding).await?;
    let address = sender_address(&request);
    let label = protocol_label(protocol).as_str();
    // Many senders may share the address of a proxy, so the name of the key is part of the sender's
    // name.
    let sender = match caller(&request) {
        Some(caller) => format!("{label} {} {address}", caller.name()),
        None => format!("{label} {address}"),
    };
    let collector = parts.collectors.for_body(&body.bytes);
    let (sender, memory) = (sender.into(), Some(body.memory));
    let collect = CollectRows { body: body.bytes, protocol, sender, memory };
    let collected = collector.send(collect).await.map_err(|_| Refusal::Stopping)?;
    collected.map_err(Refusal::Collect)
}

/// Answers 503 to requests that may succeed later: Prometheus drops samples on 429 by default.
fn retry_later(refusal: &Refusal) -> HttpResponse {
    let mut response = refusal.response();
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}
