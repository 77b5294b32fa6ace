//! `POST /api/v1/receivers/test`: sends a test notification to a receiver and returns its answer.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::Deserialize;
use serde_json::{Value, json};

use super::AlertingParts;
use crate::{
    api::{answer, refusal::Refusal},
    notify::{IntegrationTestResult, TooManyTests},
};

/// The maximum number of receiver names in an error message.
const NAMES_MAX: usize = 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TestRequest {
    receiver: String,
}

pub(super) async fn test(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AlertingParts>,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    let TestRequest { receiver } = match serde_json::from_slice(&body.bytes) {
        Ok(posted) => posted,
        Err(cause) => {
            let message = format!("body: {cause}");
            return Ok(answer::error(StatusCode::BAD_REQUEST, "invalid", message));
        }
    };
    drop(body);
    let Some(routing) = parts.rules.routing() else {
        let message =
            "there are no receivers; set alerts.notifications to their file, or save their text";
        return Ok(answer::error(StatusCode::NOT_FOUND, "no_receivers", message));
    };
    let Some(found) = routing.receivers.iter().find(|candidate| candidate.name == receiver) else {
        let names = routing.receivers.iter().map(|receiver| receiver.name.as_str());
        let names: Vec<_> = names.take(NAMES_MAX).collect();
        let message =
            format!("there is no receiver {receiver:?}; known receivers: {}", names.join(", "));
        return Ok(answer::error(StatusCode::NOT_FOUND, "not_found", message));
    };
    let (external, now) = (parts.rules.external(), parts.clock.now());
    Ok(match parts.receiver_tests.test(&routing, found, &external, now).await {
        Ok(tested) => {
            let integrations: Vec<_> = tested.iter().map(integration_json).collect();
            HttpResponse::Ok().json(json!({ "receiver": receiver, "integrations": integrations }))
        }
        Err(cause @ TooManyTests) => answer::error(StatusCode::SERVICE_UNAVAILABLE, "busy", cause),
    })
}

fn integration_json(tested: &IntegrationTestResult) -> Value {
    let IntegrationTestResult { integration, outcome, answer, seconds } = tested;
    json!({ "integration": integration, "outcome": outcome, "answer": answer, "seconds": seconds })
}
