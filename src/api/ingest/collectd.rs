//! `POST /api/v1/collectd`: what collectd's plugin `write_http` sends with `Format "JSON"`.

use actix_web::{HttpResponse, http::header};

use super::rows::{ForeignRequest, respond};
use crate::{
    actors::{Foreign, ForeignAnswer},
    api::refusal::Refusal,
};

pub(super) async fn write(received: ForeignRequest) -> HttpResponse {
    let (request, ..) = &received;
    let media_type = request.headers().get(header::CONTENT_TYPE);
    let media_type = media_type.and_then(|value| value.to_str().ok()?.split(';').next());
    let foreign = match media_type.map(str::trim) {
        Some("application/json") => Ok(Foreign::Collectd),
        other => Err(Refusal::UnknownMediaType(format!(
            "Content-Type: {} is not known; set Format \"JSON\" in collectd's write_http",
            other.unwrap_or_default()
        ))),
    };
    respond(received, foreign, "identity", acknowledge).await
}

/// 200 where what can be kept is durable: collectd sends nothing again.
fn acknowledge(answer: ForeignAnswer) -> HttpResponse {
    HttpResponse::Ok().json(answer.answer)
}
