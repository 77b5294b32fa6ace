//! `GET /api/v2/alerts` and `/api/v2/alerts/groups`: firing alerts of rules and of other programs,
//! their receivers and their groups, in the shapes of Alertmanager.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde_json::{Value, json};

use super::{AlertingParts, fault, params::Params, time};
use crate::{
    alerts::{
        Acknowledgement, ExternalIdentity, GroupKey, Inhibitors, LabelMatcher, MessageAlert,
        PostedFiring, Routing, Silences, fingerprint, fires_until, order_by_job, order_by_labels,
    },
    kept::NotifiedGroup,
    model::UnixMillis,
};

pub(super) async fn list(request: HttpRequest, parts: web::Data<AlertingParts>) -> HttpResponse {
    answer(&request, parts, |view, params| {
        let mut listed = BTreeMap::new();
        // Alerts with the same labels are one alert.
        for alert in view.matching(params) {
            let receivers: Vec<_> =
                view.receivers(&alert).into_iter().map(|(receiver, _)| receiver).collect();
            if params.receiver.is_none()
                || receivers.iter().any(|name| accepts_receiver(params, name))
            {
                listed.insert(alert.fingerprint.clone(), alert.to_json(&receivers));
            }
        }
        listed.into_values().collect()
    })
    .await
}

pub(super) async fn groups(request: HttpRequest, parts: web::Data<AlertingParts>) -> HttpResponse {
    answer(&request, parts, |view, params| {
        let mut groups: BTreeMap<_, (String, BTreeMap<String, AlertView<'_>>)> = BTreeMap::new();
        let mut receivers_by_alert: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for alert in view.matching(params) {
            let mut receivers = Vec::new();
            for (receiver, key) in view.receivers(&alert) {
                if accepts_receiver(params, &receiver) {
                    receivers.push(receiver.clone());
                    let group = groups.entry(key).or_insert_with(|| (receiver, BTreeMap::new()));
                    group.1.insert(alert.fingerprint.clone(), alert.clone());
                }
            }
            receivers.sort();
            receivers_by_alert.insert(alert.fingerprint, receivers);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by(|((.., first), (first_name, _)), ((.., second), (second_name, _))| {
            order_by_labels(first, second).then_with(|| first_name.cmp(second_name))
        });
        let listed = groups.into_iter().map(|((.., labels), (receiver, alerts))| {
            let mut alerts: Vec<_> = alerts.into_values().collect();
            alerts.sort_by(|first, second| {
                order_by_job(&first.firing.alert.labels, &second.firing.alert.labels)
            });
            let to_json = |alert: &AlertView<'_>| {
                alert.to_json(
                    receivers_by_alert.get(&alert.fingerprint).map_or(&[][..], Vec::as_slice),
                )
            };
            let alerts: Vec<_> = alerts.iter().map(to_json).collect();
            json!({ "labels": labels, "receiver": { "name": receiver }, "alerts": alerts })
        });
        listed.collect()
    })
    .await
}

/// Answers outside of the HTTP worker, because there may be many alerts.
async fn answer(
    request: &HttpRequest,
    parts: web::Data<AlertingParts>,
    build_json: impl FnOnce(&AlertsView<'_>, &Params) -> Vec<Value> + Send + 'static,
) -> HttpResponse {
    let params = match Params::read(request.query_string()) {
        Ok(params) => params,
        Err(message) => return fault(StatusCode::BAD_REQUEST, &message),
    };
    let answer = move || {
        let (groups, _) = parts.rules.notified_groups();
        let (routing, silences) = (parts.rules.routing(), parts.silences.current());
        let now = parts.clock.now();
        let mut firing = firing(&groups, &parts.rules.external(), now);
        firing.extend(parts.posted.firing(now).into_iter().map(FiringAlert::from));
        let labels = || firing.iter().map(|firing| &firing.alert.labels);
        let view = AlertsView {
            inhibitors: routing.as_deref().map(|routing| routing.inhibitors(labels)),
            firing: &firing,
            routing: routing.as_deref(),
            silences: &silences,
            now,
        };
        build_json(&view, &params)
    };
    match web::block(answer).await {
        Ok(alerts) => HttpResponse::Ok().json(alerts),
        Err(cause) => fault(StatusCode::INTERNAL_SERVER_ERROR, &cause),
    }
}

/// Returns true when the request accepts this receiver.
fn accepts_receiver(params: &Params, receiver: &str) -> bool {
    params.receiver.as_ref().is_none_or(|matcher: &LabelMatcher| matcher.accepts(receiver))
}

/// A firing alert.
struct FiringAlert {
    alert: MessageAlert,
    acknowledged: Option<Acknowledgement>,
    updated_at: UnixMillis,
    /// The time at which the alert expires unless it is sent again.
    ends_at: UnixMillis,
}

impl From<PostedFiring> for FiringAlert {
    fn from((alert, updated_at, ends_at): PostedFiring) -> Self {
        Self { alert, acknowledged: None, updated_at, ends_at }
    }
}

/// Returns the firing alerts of rules.
fn firing(
    groups: &[NotifiedGroup],
    external: &ExternalIdentity,
    now: UnixMillis,
) -> Vec<FiringAlert> {
    let mut firing = Vec::new();
    for group in groups {
        let updated_at = UnixMillis(group.status.state.last);
        let ends_at = match fires_until(group.interval_ms(), updated_at) {
            // The group is not evaluated any more, but its alerts still fire.
            past if past <= now => fires_until(group.interval_ms(), now),
            future => future,
        };
        for (alert, link) in group.alerts(external).filter(|(alert, _)| alert.state.is_notified()) {
            let Some(message) = MessageAlert::new(alert) else { continue };
            let acknowledged = alert.acknowledged.clone();
            let alert = message.with_external_labels(external, &link);
            firing.push(FiringAlert { alert, acknowledged, updated_at, ends_at });
        }
    }
    firing
}

/// The alerts with everything that decides their receivers.
struct AlertsView<'a> {
    firing: &'a [FiringAlert],
    routing: Option<&'a Routing>,
    inhibitors: Option<Inhibitors<'a>>,
    silences: &'a Silences,
    now: UnixMillis,
}

/// An alert with the silences and the alert that suppress it.
#[derive(Clone)]
struct AlertView<'a> {
    firing: &'a FiringAlert,
    fingerprint: String,
    silenced_by: Vec<String>,
    inhibited_by: Vec<String>,
}

impl<'a> AlertsView<'a> {
    /// Returns the alerts that match a request, regardless of their receivers.
    fn matching(&self, params: &Params) -> Vec<AlertView<'a>> {
        let mut matching = Vec::new();
        for firing in self.firing {
            let alert = &firing.alert;
            let silenced_by = self.silences.silencing(&alert.labels, self.now);
            let inhibiting = self
                .inhibitors
                .as_ref()
                .and_then(|inhibitors| inhibitors.inhibiting(&alert.labels));
            let is_active = silenced_by.is_empty() && inhibiting.is_none();
            let label = |name: &str| alert.labels.get(name).map(String::as_str);
            if (is_active && !params.active)
                || (!silenced_by.is_empty() && !params.silenced)
                || (inhibiting.is_some() && !params.inhibited)
                || !params.accepts(label)
            {
                continue;
            }
            matching.push(AlertView {
                firing,
                fingerprint: fingerprint(&alert.labels),
                silenced_by: silenced_by.into_iter().map(str::to_owned).collect(),
                inhibited_by: inhibiting.map(fingerprint).into_iter().collect(),
            });
        }
        matching
    }

    /// Returns the names of an alert's receivers, each with its group.
    fn receivers(&self, alert_view: &AlertView<'_>) -> Vec<(String, GroupKey<'a>)> {
        let Some(routing) = self.routing else { return Vec::new() };
        // Receivers that were notified before the acknowledgement are also notified of the end.
        let alert = MessageAlert { acknowledged_by: None, ..alert_view.firing.alert.clone() };
        let acknowledged = alert_view.firing.acknowledged.as_ref();
        let at = acknowledged
            .map_or(self.now, |acknowledgement| UnixMillis(acknowledgement.at).min(self.now));
        let receivers = routing.receivers_of(&alert, at).into_iter();
        receivers.map(|(receiver, group)| (receiver.name.clone(), group)).collect()
    }
}

impl AlertView<'_> {
    fn to_json(&self, receivers: &[String]) -> Value {
        let alert = &self.firing.alert;
        let is_active = self.silenced_by.is_empty() && self.inhibited_by.is_empty();
        let receivers: Vec<_> = receivers.iter().map(|name| json!({ "name": name })).collect();
        let mut json = json!({
            "labels": alert.labels,
            "annotations": alert.annotations,
            "startsAt": time(UnixMillis(alert.starts_at)),
            "endsAt": time(self.firing.ends_at),
            "updatedAt": time(self.firing.updated_at),
            "fingerprint": self.fingerprint,
            "generatorURL": alert.generator_url,
            "receivers": receivers,
            "status": {
                "state": if is_active { "active" } else { "suppressed" },
                "silencedBy": self.silenced_by,
                "inhibitedBy": self.inhibited_by,
            },
        });
        if let (Some(acknowledged), Some(fields)) =
            (&self.firing.acknowledged, json.as_object_mut())
        {
            fields.insert("acknowledged".to_owned(), json!(acknowledged));
        }
        json
    }
}
