//! `GET /api/v2/status` and `/api/v2/receivers`: what Alertmanager's clients ask to know what they
//! talk to.

use actix_web::{HttpResponse, web};
use serde_json::{Value, json};

use super::{AlertingParts, time};
use crate::alerts::Routing;

/// There is one daemon. Of its configuration are shown the routes and the names of receivers: the
/// rest may be secret.
pub(super) async fn status(parts: web::Data<AlertingParts>) -> HttpResponse {
    let original = parts.rules.routing().map_or_else(String::new, |own| configuration(&own));
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

/// As Alertmanager reads it: JSON is YAML.
fn configuration(routing: &Routing) -> String {
    let names = routing.receivers.iter().map(|own| json!({ "name": own.name }));
    let receivers: Vec<_> = names.collect();
    let shown = json!({ "route": route(routing, 0), "receivers": receivers });
    // All keys are texts.
    serde_json::to_string_pretty(&shown).unwrap_or_default()
}

/// A route with those below it, no deeper than files may nest.
fn route(routing: &Routing, place: usize) -> Value {
    let Some(own) = routing.routes.get(place) else { return Value::Null };
    let receiver = routing.receivers.get(own.receiver).map(|own| own.name.as_str());
    let matchers: Vec<_> = own.matchers.iter().map(ToString::to_string).collect();
    let below: Vec<_> = own.below.iter().map(|place| route(routing, *place)).collect();
    let mut shown = json!({
        "receiver": receiver,
        "group_by": own.group_by.clone().unwrap_or_else(|| vec!["...".to_owned()]),
        "group_wait": format!("{}ms", own.group_wait_ms),
        "group_interval": format!("{}ms", own.group_interval_ms),
        "repeat_interval": format!("{}ms", own.repeat_interval_ms),
        "matchers": matchers,
        "continue": own.goes_on,
    });
    if !below.is_empty() {
        shown["routes"] = below.into();
    }
    shown
}

/// Those that are told without an Alertmanager, in the order of their file.
pub(super) async fn receivers(parts: web::Data<AlertingParts>) -> HttpResponse {
    let routing = parts.rules.routing();
    let all = routing.iter().flat_map(|own| &own.receivers);
    let names: Vec<_> = all.map(|own| json!({ "name": own.name })).collect();
    HttpResponse::Ok().json(names)
}
