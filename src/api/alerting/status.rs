//! `GET /api/v2/status` and `/api/v2/receivers`, with which clients of Alertmanager check the
//! server.

use actix_web::{HttpResponse, web};
use serde_json::{Value, json};

use super::{AlertingParts, time};
use crate::alerts::Routing;

/// Reports a server without a cluster. The configuration contains only routes and receiver names,
/// because the rest may be secret.
pub(super) async fn status(parts: web::Data<AlertingParts>) -> HttpResponse {
    let original =
        parts.rules.routing().map_or_else(String::new, |routing| configuration(&routing));
    HttpResponse::Ok().json(json!({
        "cluster": { "status": "disabled", "peers": [] },
        "config": { "original": original },
        "uptime": time(parts.started),
        "versionInfo": {
            "version": concat!("granary-", env!("CARGO_PKG_VERSION")),
            "revision": "",
            "branch": "",
            "buildUser": "",
            "buildDate": "",
            "goVersion": "",
        },
    }))
}

/// Returns the configuration in Alertmanager's format (JSON is valid YAML).
fn configuration(routing: &Routing) -> String {
    let names = routing.receivers.iter().map(|receiver| json!({ "name": receiver.name }));
    let receivers: Vec<_> = names.collect();
    let json = json!({ "route": route(routing, 0), "receivers": receivers });
    // Serialization cannot fail: all keys are strings.
    serde_json::to_string_pretty(&json).unwrap_or_default()
}

/// Returns a route with its child routes.
fn route(routing: &Routing, index: usize) -> Value {
    let Some(found) = routing.routes.get(index) else { return Value::Null };
    let receiver = routing.receivers.get(found.receiver).map(|receiver| receiver.name.as_str());
    let matchers: Vec<_> = found.matchers.iter().map(ToString::to_string).collect();
    let children: Vec<_> = found.children.iter().map(|index| route(routing, *index)).collect();
    let mut json = json!({
        "receiver": receiver,
        "group_by": found.group_by.clone().unwrap_or_else(|| vec!["...".to_owned()]),
        "group_wait": format!("{}ms", found.group_wait_ms),
        "group_interval": format!("{}ms", found.group_interval_ms),
        "repeat_interval": format!("{}ms", found.repeat_interval_ms),
        "matchers": matchers,
        "continue": found.continues,
    });
    if !children.is_empty() {
        json["routes"] = children.into();
    }
    json
}

/// Lists the receivers in the order of their file.
pub(super) async fn receivers(parts: web::Data<AlertingParts>) -> HttpResponse {
    let routing = parts.rules.routing();
    let all = routing.iter().flat_map(|routing| &routing.receivers);
    let names: Vec<_> = all.map(|receiver| json!({ "name": receiver.name })).collect();
    HttpResponse::Ok().json(names)
}
