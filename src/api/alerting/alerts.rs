//! `GET /api/v2/alerts` and `/api/v2/alerts/groups`: what fires, who is told of it, and in which
//! groups, as Alertmanager shows it: alerts of rules, and those that other programs sent.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde_json::{Value, json};

use super::{AlertingParts, fault, params::Params, time};
use crate::{
    alerts::{
        Acknowledgement, External, GroupKey, Inhibitors, LabelMatcher, MessageAlert, PostedFiring,
        Routing, Silences, by_job, by_labels, fingerprint, fires_until,
    },
    kept::ToldGroup,
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
            alerts
                .sort_by(|one, other| by_job(&one.firing.alert.labels, &other.firing.alert.labels));
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
        let now = parts.clock.now();
        let mut firing = firing(&groups, parts.rules.external(), now);
        firing.extend(parts.posted.firing(now).into_iter().map(Firing::from));
        let labels = || firing.iter().map(|own| &own.alert.labels);
        let view = View {
            inhibitors: routing.as_deref().map(|own| own.inhibitors(labels)),
            firing: &firing,
            routing: routing.as_deref(),
            silences: &silences,
            now,
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

/// An alert that fires.
struct Firing {
    alert: MessageAlert,
    acknowledged: Option<Acknowledgement>,
    updated_at: UnixMillis,
    /// The time from which it counts as over without further news.
    ends_at: UnixMillis,
}

impl From<PostedFiring> for Firing {
    fn from((alert, updated_at, ends_at): PostedFiring) -> Self {
        Self { alert, acknowledged: None, updated_at, ends_at }
    }
}

/// The alerts of rules that fire.
fn firing(groups: &[ToldGroup], external: &External, now: UnixMillis) -> Vec<Firing> {
    let mut firing = Vec::new();
    for group in groups {
        let updated_at = UnixMillis(group.status.state.last);
        let ends_at = match fires_until(group.interval_ms(), updated_at) {
            // It is not evaluated now, and goes on.
            past if past <= now => fires_until(group.interval_ms(), now),
            future => future,
        };
        for (alert, link) in group.alerts(external).filter(|(own, _)| own.state.is_told()) {
            let Some(told) = MessageAlert::new(alert) else { continue };
            let acknowledged = alert.acknowledged.clone();
            let alert = told.outside(external, &link);
            firing.push(Firing { alert, acknowledged, updated_at, ends_at });
        }
    }
    firing
}

/// All by which it is known what is told to whom.
struct View<'a> {
    firing: &'a [Firing],
    routing: Option<&'a Routing>,
    inhibitors: Option<Inhibitors<'a>>,
    silences: &'a Silences,
    now: UnixMillis,
}

/// An alert with what keeps it from being told.
#[derive(Clone)]
struct Shown<'a> {
    firing: &'a Firing,
    fingerprint: String,
    silenced_by: Vec<String>,
    inhibited_by: Vec<String>,
}

impl<'a> View<'a> {
    /// The alerts that are asked for, whoever is told of them.
    fn asked(&self, params: &Params) -> Vec<Shown<'a>> {
        let mut asked = Vec::new();
        for firing in self.firing {
            let alert = &firing.alert;
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
                firing,
                fingerprint: fingerprint(&alert.labels),
                silenced_by: silenced_by.into_iter().map(str::to_owned).collect(),
                inhibited_by: inhibiting.map(fingerprint).into_iter().collect(),
            });
        }
        asked
    }

    /// The names of who is told, each with its group.
    fn told(&self, own: &Shown<'_>) -> Vec<(String, GroupKey<'a>)> {
        let Some(routing) = self.routing else { return Vec::new() };
        // Who was told before somebody looked after it is told of its end, too.
        let alert = MessageAlert { acknowledged_by: None, ..own.firing.alert.clone() };
        let acknowledged = own.firing.acknowledged.as_ref();
        let at = acknowledged.map_or(self.now, |own| UnixMillis(own.at).min(self.now));
        let told = routing.told(&alert, at).into_iter();
        told.map(|(receiver, group)| (receiver.name.clone(), group)).collect()
    }
}

impl Shown<'_> {
    fn to_json(&self, receivers: &[String]) -> Value {
        let own = &self.firing.alert;
        let is_active = self.silenced_by.is_empty() && self.inhibited_by.is_empty();
        let receivers: Vec<_> = receivers.iter().map(|name| json!({ "name": name })).collect();
        let mut shown = json!({
            "labels": own.labels,
            "annotations": own.annotations,
            "startsAt": time(UnixMillis(own.starts_at)),
            "endsAt": time(self.firing.ends_at),
            "updatedAt": time(self.firing.updated_at),
            "fingerprint": self.fingerprint,
            "generatorURL": own.generator_url,
            "receivers": receivers,
            "status": {
                "state": if is_active { "active" } else { "suppressed" },
                "silencedBy": self.silenced_by,
                "inhibitedBy": self.inhibited_by,
            },
        });
        if let (Some(acknowledged), Some(shown)) =
            (&self.firing.acknowledged, shown.as_object_mut())
        {
            shown.insert("acknowledged".to_owned(), json!(acknowledged));
        }
        shown
    }
}
