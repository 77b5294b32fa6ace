//! `GET /api/v2/alerts`: what fires, as Alertmanager shows it. Nobody else may send alerts here.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde_json::{Value, json};

use super::{AlertingParts, fault, params::Params, time};
use crate::{
    actors::GroupStatus,
    alerts::{Alert, fingerprint, fires_until},
    model::UnixMillis,
};

pub(super) async fn list(request: HttpRequest, parts: web::Data<AlertingParts>) -> HttpResponse {
    let params = match Params::read(request.query_string()) {
        Ok(params) => params,
        Err(message) => return fault(StatusCode::BAD_REQUEST, &message),
    };
    match web::block(move || shown(&params, &parts)).await {
        Ok(shown) => HttpResponse::Ok().json(shown),
        Err(cause) => fault(StatusCode::INTERNAL_SERVER_ERROR, &cause),
    }
}

/// In order of their fingerprints. Two with the same labels are one, the last to change.
fn shown(params: &Params, parts: &AlertingParts) -> Vec<Value> {
    let (groups, _) = parts.rules.told_groups();
    let (silences, now) = (parts.silences.known(), parts.clock.now());
    let mut shown = BTreeMap::new();
    // Receivers have no names yet: who asks for one gets nothing.
    if params.receiver.is_some() {
        return Vec::new();
    }
    for (interval_ms, status) in &groups {
        let alerts = status.state.rules.values().flat_map(|rule| &rule.alerts);
        for own in alerts.filter(|alert| alert.state.is_told()) {
            let label = |name: &str| own.labels.get(name).map(String::as_str);
            let silenced_by = silences.silencing(&own.labels, now);
            let is_asked = if silenced_by.is_empty() { params.active } else { params.silenced };
            if is_asked && params.asks_for(label) {
                let fingerprint = fingerprint(&own.labels);
                let alert = alert(own, *interval_ms, status, &silenced_by, &fingerprint);
                shown.insert(fingerprint, alert);
            }
        }
    }
    shown.into_values().collect()
}

fn alert(
    own: &Alert,
    interval_ms: i64,
    status: &GroupStatus,
    silenced_by: &[&str],
    fingerprint: &str,
) -> Value {
    let state = if silenced_by.is_empty() { "active" } else { "suppressed" };
    let updated_at = UnixMillis(status.state.last);
    let mut shown = json!({
        "labels": own.labels,
        "annotations": own.annotations,
        "startsAt": time(UnixMillis(own.fired_at.unwrap_or(own.active_at))),
        "endsAt": time(fires_until(interval_ms, updated_at)),
        "updatedAt": time(updated_at),
        "fingerprint": fingerprint,
        "generatorURL": "",
        "receivers": [],
        "status": { "state": state, "silencedBy": silenced_by, "inhibitedBy": [] },
    });
    if let (Some(acknowledged), Some(shown)) = (&own.acknowledged, shown.as_object_mut()) {
        shown.insert("acknowledged".to_owned(), json!(acknowledged));
    }
    shown
}
