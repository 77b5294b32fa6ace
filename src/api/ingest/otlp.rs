//! `POST /v1/metrics`: OTLP over HTTP (opentelemetry.io, "OTLP Specification", OTLP/HTTP).

use actix_web::{
    HttpResponse,
    http::{StatusCode, header},
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceResponse,
};
use prost::Message;
use serde_json::json;

use super::rows::{RowsRequest, respond};
use crate::{
    actors::RowsAnswer,
    api::refusal::Refusal,
    ingest::{otlp::Form, protocol::RowProtocol},
};

pub(super) async fn write(received: RowsRequest) -> HttpResponse {
    let (request, ..) = &received;
    let media_type = request.headers().get(header::CONTENT_TYPE);
    let media_type = media_type.and_then(|value| value.to_str().ok()?.split(';').next());
    let form = match media_type.map(str::trim) {
        Some("application/json") => Ok(Form::Json),
        Some("application/x-protobuf") => Ok(Form::Protobuf),
        other => Err(Refusal::UnknownMediaType(format!(
            "Content-Type: {} is not supported; use application/x-protobuf or application/json",
            other.unwrap_or_default()
        ))),
    };
    let answer_form = *form.as_ref().unwrap_or(&Form::Json);
    let protocol = form.map(RowProtocol::Otlp);
    let acknowledge = |answer| acknowledge(answer, answer_form);
    let mut response = respond(received, protocol, "identity", acknowledge).await;
    // Senders drop the batch on any other 5xx ("Retryable Response Codes").
    let retryable = [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::INSUFFICIENT_STORAGE];
    if retryable.contains(&response.status()) {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

/// Acknowledges in the encoding of the request, with the number of refused points.
fn acknowledge(answer: RowsAnswer, form: Form) -> HttpResponse {
    let rejected = answer.refused_points;
    let examples = answer.answer.examples.into_iter();
    let messages: Vec<_> = examples.map(|refusal| refusal.message).collect();
    let error_message = messages.join("; ");
    match form {
        Form::Json if rejected == 0 => HttpResponse::Ok().json(json!({})),
        // Protobuf's JSON form writes 64-bit numbers as strings.
        Form::Json => HttpResponse::Ok().json(json!({ "partialSuccess": {
            "rejectedDataPoints": rejected.to_string(), "errorMessage": error_message } })),
        Form::Protobuf => {
            let partial_success = (rejected > 0).then_some(ExportMetricsPartialSuccess {
                rejected_data_points: rejected as i64,
                error_message,
            });
            let message = ExportMetricsServiceResponse { partial_success };
            HttpResponse::Ok().content_type("application/x-protobuf").body(message.encode_to_vec())
        }
    }
}
