//! The work of a shard for the node that answers for the whole: batches, rows and cells.
//!
//! Requests need the secret of the cluster. Must never know: users, keys, how a request was split.

mod asking;
mod held;
mod router;
mod whole;
mod wire;

use std::time::Duration;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web::{self, ServiceConfig},
};

pub(super) use asking::{LABELS, LabelsQuestion, METADATA, SERIES, SeriesQuestion};
pub use held::{HeldShard, HeldShards};
pub use router::ShardRouter;
pub(super) use whole::has_match;
pub use whole::of_all_shards;

use super::{answer, body::FORM_BYTES_MAX, refusal::Refusal};
use crate::{
    actors::{CollectBatches, CollectRows},
    ingest::protocol::RowProtocol,
    query::{ErrorOfShard, QueryError},
};
use wire::{AskQuery, BatchesQuery, RowsQuery, SentRowsAnswer};

/// Registers the routes for one HTTP worker.
pub fn routes(config: &mut ServiceConfig, held: &HeldShards) {
    config.service(
        web::scope("/shards/v1/{shard}")
            .app_data(web::Data::new(held.clone()))
            .route("/batches", web::post().to(batches))
            .route("/rows", web::post().to(rows))
            .route("/ask", web::post().to(ask)),
    );
}

/// Returns the refusal of a request without the secret.
fn refusal(request: &HttpRequest, held: &HeldShards) -> Option<HttpResponse> {
    let given = request.headers().get(header::AUTHORIZATION);
    let given = given.and_then(|value| value.to_str().ok()).unwrap_or_default();
    if held.control().admits(given) {
        return None;
    }
    let message = "only nodes of this cluster may send this request";
    Some(answer::error(StatusCode::UNAUTHORIZED, "unauthorized", message))
}

fn not_held(shard: u16) -> HttpResponse {
    let message = format!("this node does not hold shard {shard} at present; retry");
    answer::error(StatusCode::SERVICE_UNAVAILABLE, "no_holder", message)
}

/// Collects batches of senders whose batches are in this shard.
async fn batches(
    request: HttpRequest,
    payload: web::Payload,
    held: web::Data<HeldShards>,
    shard: web::Path<u16>,
    query: web::Query<BatchesQuery>,
) -> HttpResponse {
    if let Some(refusal) = refusal(&request, &held) {
        return refusal;
    }
    let (shard, query) = (shard.into_inner(), query.into_inner());
    let Some(encoding) = query.encoding() else {
        return answer::error(StatusCode::BAD_REQUEST, "malformed", "unknown encoding");
    };
    let Some(project) = held.project(shard, &query.project) else { return not_held(shard) };
    let collected = async {
        let body = held.bodies().receive(&request, payload, "identity").await?;
        let collect = CollectBatches {
            body: body.bytes,
            encoding,
            decoded: Some(query.replace),
            is_own: false,
            senders: None,
            memory: body.memory,
        };
        let sent = project.collector.send(collect).await;
        sent.map_err(|_| Refusal::Stopping)?.map_err(Refusal::Collect)
    };
    match collected.await {
        Ok(collected) => HttpResponse::Ok().json(collected),
        Err(refusal) => refusal.response(),
    }
}

/// Collects rows of this shard.
async fn rows(
    request: HttpRequest,
    payload: web::Payload,
    held: web::Data<HeldShards>,
    shard: web::Path<u16>,
    query: web::Query<RowsQuery>,
) -> HttpResponse {
    if let Some(refusal) = refusal(&request, &held) {
        return refusal;
    }
    let (shard, query) = (shard.into_inner(), query.into_inner());
    let Some(project) = held.project(shard, &query.project) else { return not_held(shard) };
    let collected = async {
        let body = held.bodies().receive(&request, payload, "identity").await?;
        let collect = CollectRows {
            body: body.bytes,
            protocol: RowProtocol::Part,
            sender: query.sender.into(),
            memory: Some(body.memory),
        };
        let sent = project.collector.send(collect).await;
        sent.map_err(|_| Refusal::Stopping)?.map_err(Refusal::Collect)
    };
    match collected.await {
        Ok(collected) => HttpResponse::Ok().json(SentRowsAnswer::from(collected)),
        Err(refusal) => refusal.response(),
    }
}

/// Answers a question about this shard.
async fn ask(
    request: HttpRequest,
    payload: web::Payload,
    held: web::Data<HeldShards>,
    shard: web::Path<u16>,
    query: web::Query<AskQuery>,
) -> HttpResponse {
    if let Some(refusal) = refusal(&request, &held) {
        return refusal;
    }
    let (shard, query) = (shard.into_inner(), query.into_inner());
    let Some(project) = held.project(shard, &query.project) else {
        let error = ErrorOfShard {
            error: "busy".to_owned(),
            message: format!("shard {shard} has no holder at present; retry"),
        };
        return HttpResponse::ServiceUnavailable().json(error);
    };
    let body = match held.bodies().receive_query(&request, payload, FORM_BYTES_MAX).await {
        Ok(body) => body,
        Err(refusal) => return refusal.response(),
    };
    let time_max = Duration::from_millis(query.time_ms);
    let (shards, kind) = (held.clone(), query.kind);
    let answered =
        web::block(move || asking::answer(&shards, &project, &kind, &body.bytes, time_max));
    let fault = match answered.await {
        // The lease must outlast the reading.
        Ok(Ok(answer)) if held.project(shard, &query.project).is_some() => {
            // The memory is free once the answer is sent.
            let answer = bytes::Bytes::from_owner(answer);
            return HttpResponse::Ok().content_type("application/octet-stream").body(answer);
        }
        Ok(Ok(_)) => QueryError::Busy(format!("shard {shard} has moved; retry")),
        Ok(Err(cause)) => cause,
        Err(cause) => QueryError::Busy(cause.to_string()),
    };
    HttpResponse::UnprocessableEntity().json(ErrorOfShard::from(&fault))
}
