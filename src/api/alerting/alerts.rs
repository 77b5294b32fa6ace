//! `GET /api/v2/alerts` and `/api/v2/alerts/groups`: what fires, who is told of it, and in which groups,
//! as Alertmanager shows it. Nobody else may send alerts here.

use std::{collections::BTreeMap, sync::Arc};

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde_json::{Value, json};

use super::{AlertingParts, fault, params::Params, time};
use crate::{
    actors::GroupStatus,
    alerts::{
        Alert, GroupKey, Inhibitors, LabelMatcher, MessageAlert, Routing, Silences, by_job,
        by_labels, fingerprint, fires_until,
    },
    model::UnixMillis,
};

pub(super) async fn list(request: HttpRequest, parts: web::Data<AlertingParts>) -> HttpResponse {
    answer(&request, parts, |view, params| {
        let mut shown = BTreeMap::new();
        // Two with the same labels are one.
        for own in view.asked(params) {
            let told: Vec<_> = view.told(&own).into_iter().map(|(receiver, _)| receiver).collect();
            if params.receiver.is_none() || told.iter().any(|name| is_asked(params, name)) {
                shown.insert(own.fingerprint.clone(), own.to_json(&told));
            }
        }
        shown.into_values().collect()
    })
    .await
}

pub(super) async fn groups(request: HttpRequest, parts: web::Data<AlertingParts>) -> HttpResponse {
    answer(&request, parts, |view, params| {
        let mut groups: BTreeMap<_, (String, BTreeMap<String, Shown<'_>>)> = BTreeMap::new();
        let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for own in view.asked(params) {
            let mut receivers = Vec::new();
            for (receiver, key) in view.told(&own) {
                if is_asked(params, &receiver) {
                    receivers.push(receiver.clone());
                    let group = groups.entry(key).or_insert_with(|| (receiver, BTreeMap::new()));
                    group.1.insert(own.fingerprint.clone(), own.clone());
                }
            }
            receivers.sort();
            told.insert(own.fingerprint, receivers);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by(|((.., one), (one_name, _)), ((.., other), (other_name, _))| {
            by_labels(one, other).then_with(|| one_name.cmp(other_name))
        });
        let shown = groups.into_iter().map(|((.., labels), (receiver, alerts))| {
            let mut alerts: Vec<_> = alerts.into_values().collect();
            alerts.sort_by(|one, other| by_job(&one.alert.labels, &other.alert.labels));
            let alert = |own: &Shown<'_>| {
                own.to_json(told.get(&own.fingerprint).map_or(&[][..], Vec::as_slice))
            };
            let alerts: Vec<_> = alerts.iter().map(alert).collect();
            json!({ "labels": labels, "receiver": { "name": receiver }, "alerts": alerts })
        });
        shown.collect()
    })
    .await
}

/// Answers away from the HTTP worker: there may be many.
async fn answer(
    request: &HttpRequest,
    parts: web::Data<AlertingParts>,
    shown: impl FnOnce(&View<'_>, &Params) -> Vec<Value> + Send + 'static,
) -> HttpResponse {
    let params = match Params::read(request.query_string()) {
        Ok(params) => params,
        Err(message) => return fault(StatusCode::BAD_REQUEST, &message),
    };
    let find = move || {
        let (groups, _) = parts.rules.told_groups();
        let (routing, silences) = (parts.rules.routing(), parts.silences.known());
        let firing = firing(&groups);
        let view = View {
            inhibitors: routing
                .as_deref()
                .map(|own| own.inhibitors(|| firing.iter().map(|(alert, ..)| &alert.labels))),
            firing: &firing,
            routing: routing.as_deref(),
            silences: &silences,
            now: parts.clock.now(),
        };
        shown(&view, &params)
    };
    match web::block(find).await {
        Ok(shown) => HttpResponse::Ok().json(shown),
        Err(cause) => fault(StatusCode::INTERNAL_SERVER_ERROR, &cause),
    }
}

/// Whether a receiver is asked for.
fn is_asked(params: &Params, receiver: &str) -> bool {
    params.receiver.as_ref().is_none_or(|own: &LabelMatcher| own.accepts(receiver))
}

/// An alert, with the interval of its group in milliseconds, and when that was evaluated.
type Firing<'a> = (&'a Alert, i64, UnixMillis);

fn firing(groups: &[(i64, Arc<GroupStatus>)]) -> Vec<Firing<'_>> {
    let mut firing = Vec::new();
    for (interval_ms, status) in groups {
        let alerts = status.state.rules.values().flat_map(|rule| &rule.alerts);
        let told = alerts.filter(|alert| alert.state.is_told());
        firing.extend(told.map(|own| (own, *interval_ms, UnixMillis(status.state.last))));
    }
    firing
}

/// All by which it is known what is told to whom.
struct View<'a> {
    firing: &'a [Firing<'a>],
    routing: Option<&'a Routing>,
    inhibitors: Option<Inhibitors<'a>>,
    silences: &'a Silences,
    now: UnixMillis,
}

/// An alert with what keeps it from being told.
#[derive(Debug, Clone)]
struct Shown<'a> {
    alert: &'a Alert,
    updated_at: UnixMillis,
    ends_at: UnixMillis,
    fingerprint: String,
    silenced_by: Vec<String>,
    inhibited_by: Vec<String>,
}

impl<'a> View<'a> {
    /// The alerts that are asked for, whoever is told of them.
    fn asked(&self, params: &Params) -> Vec<Shown<'a>> {
        let mut asked = Vec::new();
        for (alert, interval_ms, updated_at) in self.firing.iter().copied() {
            let silenced_by = self.silences.silencing(&alert.labels, self.now);
            let inhibiting = self.inhibitors.as_ref().and_then(|own| own.inhibiting(&alert.labels));
            let is_active = silenced_by.is_empty() && inhibiting.is_none();
            let label = |name: &str| alert.labels.get(name).map(String::as_str);
            if (is_active && !params.active)
                || (!silenced_by.is_empty() && !params.silenced)
                || (inhibiting.is_some() && !params.inhibited)
                || !params.asks_for(label)
            {
                continue;
            }
            asked.push(Shown {
                alert,
                updated_at,
                ends_at: match fires_until(interval_ms, updated_at) {
                    // It is not evaluated now, and goes on.
                    past if past <= self.now => fires_until(interval_ms, self.now),
                    future => future,
                },
                fingerprint: fingerprint(&alert.labels),
                silenced_by: silenced_by.into_iter().map(str::to_owned).collect(),
                inhibited_by: inhibiting.map(fingerprint).into_iter().collect(),
            });
        }
        asked
    }

    /// The names of who is told, each with its group.
    fn told(&self, own: &Shown<'_>) -> Vec<(String, GroupKey<'a>)> {
        let (Some(routing), Some(mut alert)) = (self.routing, MessageAlert::new(own.alert)) else {
            return Vec::new();
        };
        // Who was told before somebody looked after it is told of its end, too.
        alert.acknowledged_by = None;
        let acknowledged = own.alert.acknowledged.as_ref();
        let at = acknowledged.map_or(self.now, |own| UnixMillis(own.at).min(self.now));
        let told = routing.told(&alert, at).into_iter();
        told.map(|(receiver, group)| (receiver.name.clone(), group)).collect()
    }
}

impl Shown<'_> {
    fn to_json(&self, receivers: &[String]) -> Value {
        let own = self.alert;
        let is_active = self.silenced_by.is_empty() && self.inhibited_by.is_empty();
        let receivers: Vec<_> = receivers.iter().map(|name| json!({ "name": name })).collect();
        let mut shown = json!({
            "labels": own.labels,
            "annotations": own.annotations,
            "startsAt": time(UnixMillis(own.fired_at.unwrap_or(own.active_at))),
            "endsAt": time(self.ends_at),
            "updatedAt": time(self.updated_at),
            "fingerprint": self.fingerprint,
            "generatorURL": "",
            "receivers": receivers,
            "status": {
                "state": if is_active { "active" } else { "suppressed" },
                "silencedBy": self.silenced_by,
                "inhibitedBy": self.inhibited_by,
            },
        });
        if let (Some(acknowledged), Some(shown)) = (&own.acknowledged, shown.as_object_mut()) {
            shown.insert("acknowledged".to_owned(), json!(acknowledged));
        }
        shown
    }
}
