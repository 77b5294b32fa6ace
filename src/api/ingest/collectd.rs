//! `POST /api/v1/collectd`: samples of collectd's plugin `write_http` with `Format "JSON"`.

use actix_web::{HttpResponse, http::header};

use super::rows::{RowsRequest, respond};
use crate::{actors::RowsAnswer, api::refusal::Refusal, ingest::protocol::RowProtocol};

pub(super) async fn write(received: RowsRequest) -> HttpResponse {
    let (request, ..) = &received;
    let media_type = request.headers().get(header::CONTENT_TYPE);
    let media_type = media_type.and_then(|value| value.to_str().ok()?.split(';').next());
    let protocol = match media_type.map(str::trim) {
        Some("application/json") => Ok(RowProtocol::Collectd),
        other => Err(Refusal::UnknownMediaType(format!(
            "Content-Type: {} is not supported; set Format \"JSON\" in collectd's write_http",
            other.unwrap_or_default()
        ))),
    };
    respond(received, protocol, "identity", acknowledge).await
}

/// Answers 200 once the accepted samples are durable; collectd never retries.
fn acknowledge(answer: RowsAnswer) -> HttpResponse {
    HttpResponse::Ok().json(answer.answer)
}
