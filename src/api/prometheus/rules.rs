//! `rules` and `alerts`, as Prometheus answers them.
//!
//! Must never know: how rules are evaluated. An alert that nothing is measured is shown as one that
//! fires, with `noData`: clients know no fourth state.

use std::sync::Arc;

use actix_web::HttpResponse;
use serde_json::{Map, Value, json};

use super::{
    answer::{Answer, Data},
    fault::Fault,
    json::push_exponent,
    params::Params,
    query::of,
    receive::{Asked, Received, respond},
};
use crate::{
    alerts::{
        Action, Alert, AlertPolicy, AlertState, External, Rule, RuleFault, RuleGroup, RuleReport,
        Silences, read_rules,
    },
    kept::GroupStatus,
    model::UnixMillis,
};

/// What an alert takes in an answer, and a rule beside its alerts, about.
const ENTRY_BYTES: usize = 2048;
/// Of groups that are checked and name none: any will do.
const CHECKED_INTERVAL_MS: i64 = 60_000;

pub(super) async fn rules(received: Received) -> HttpResponse {
    respond("promql_status", received, |asked| {
        let wanted = Wanted::read(asked)?;
        let (set, statuses) = asked.parts.rules.groups();
        let entries = entries(&statuses);
        asked.limits().take(entries * ENTRY_BYTES).map_err(of)?;
        let both = set.groups.iter().zip(&statuses);
        let groups: Vec<_> = both.filter_map(|(group, own)| wanted.group(group, own)).collect();
        Ok(Answer::of(Data::Json(json!({ "groups": groups }).to_string().into())))
    })
    .await
}

pub(super) async fn alerts(received: Received) -> HttpResponse {
    respond("promql_status", received, active).await
}

/// Whether a text would do as a rule file: for who writes one, before it lies among the daemon's.
pub(super) async fn check(received: Received) -> HttpResponse {
    respond("promql_status", received, |asked| {
        let text = asked.params.get("rules").unwrap_or_default();
        let limits = asked.limits();
        let groups = read_rules("rules", text, CHECKED_INTERVAL_MS, &limits).map_err(|faults| {
            let told: Vec<_> = faults.iter().map(RuleFault::to_string).collect();
            Fault::bad_data(told.join("\n"))
        })?;
        let rules: usize = groups.iter().map(|group| group.rules.len()).sum();
        let found = json!({ "groups": groups.len(), "rules": rules });
        Ok(Answer::of(Data::Json(found.to_string().into())))
    })
    .await
}

fn active(asked: &Asked<'_>) -> Result<Answer, Fault> {
    let (set, statuses) = asked.parts.rules.groups();
    // They go on as they were, though their file cannot be read.
    let unread = asked.parts.rules.unread();
    let entries = entries(&statuses) + entries(&unread);
    asked.limits().take(entries * ENTRY_BYTES).map_err(of)?;
    let silenced = Silenced::now(asked);
    let mut shown = Vec::new();
    for (group, status) in set.groups.iter().zip(&statuses) {
        for rule in &group.rules {
            shown.extend(alerts_of(rule, status).map(|own| alert(own, &silenced)));
        }
    }
    let rules = unread.iter().flat_map(|own| own.state.rules.values());
    let alerts = rules.flat_map(|own| &own.alerts).filter(|alert| alert.is_active());
    shown.extend(alerts.map(|own| alert(own, &silenced)));
    Ok(Answer::of(Data::Json(json!({ "alerts": shown }).to_string().into())))
}

/// Rules and alerts.
fn entries(statuses: &[Arc<GroupStatus>]) -> usize {
    let alerts = |own: &GroupStatus| -> usize {
        own.state.rules.values().map(|rule| rule.alerts.len()).sum()
    };
    statuses.iter().map(|own| own.reports.len() + alerts(own)).sum()
}

/// Those that are pending or fire.
fn alerts_of<'a>(rule: &Rule, status: &'a GroupStatus) -> impl Iterator<Item = &'a Alert> {
    let state = status.state.rules.get(&rule.key);
    state.into_iter().flat_map(|own| &own.alerts).filter(|alert| alert.is_active())
}

/// The silences by which alerts are shown.
struct Silenced<'a> {
    silences: Arc<Silences>,
    external: &'a External,
    at: UnixMillis,
}

impl<'a> Silenced<'a> {
    fn now(asked: &Asked<'a>) -> Self {
        let (parts, at) = (asked.parts, asked.parts.clock.now());
        Self { silences: parts.silences.known(), external: parts.rules.external(), at }
    }
}

/// Which rules are asked for.
struct Wanted<'a> {
    params: &'a Params,
    silenced: Silenced<'a>,
    alerting: bool,
    recording: bool,
    without_alerts: bool,
}

impl<'a> Wanted<'a> {
    fn read(asked: &Asked<'a>) -> Result<Self, Fault> {
        let params = asked.params;
        let (alerting, recording) = match params.get("type") {
            None => (true, true),
            Some("alert") => (true, false),
            Some("record") => (false, true),
            Some(other) => {
                let message = format!("not supported value {other:?}");
                return Err(Fault::parameter("type", message));
            }
        };
        let without_alerts = params.get("exclude_alerts") == Some("true");
        let silenced = Silenced::now(asked);
        Ok(Self { params, silenced, alerting, recording, without_alerts })
    }

    /// Whether a name is among those asked for, if any are.
    fn names(&self, parameter: &str, name: &str) -> bool {
        let mut asked = self.params.all(parameter).peekable();
        asked.peek().is_none() || asked.any(|own| own == name)
    }

    fn group(&self, group: &RuleGroup, status: &GroupStatus) -> Option<Value> {
        if !self.names("file[]", &group.file) || !self.names("rule_group[]", &group.name) {
            return None;
        }
        let is_some = !group.rules.is_empty();
        let numbered = group.rules.iter().enumerate();
        let rules: Vec<_> = numbered
            .filter(|(_, rule)| self.names("rule_name[]", &rule.name))
            .filter_map(|(index, rule)| self.rule(rule, index, status))
            .collect();
        if rules.is_empty() && is_some {
            return None;
        }
        Some(json!({
            "name": group.name,
            "file": group.file,
            "rules": rules,
            "interval": group.interval_ms as f64 / 1000.0,
            "limit": group.limit,
            "evaluationTime": status.seconds,
            "lastEvaluation": time(status.evaluated_at),
            "missedEvaluations": status.missed,
        }))
    }

    fn rule(&self, rule: &Rule, index: usize, status: &GroupStatus) -> Option<Value> {
        let (report, seconds) = status.report(index, rule).cloned().unwrap_or_default();
        let mut shown = Map::new();
        let mut put = |key: &str, value: Value| drop(shown.insert(key.to_owned(), value));
        match &rule.action {
            Action::Record if !self.recording => return None,
            Action::Alert(_) if !self.alerting => return None,
            Action::Record => put("type", json!("recording")),
            Action::Alert(policy) => {
                put("type", json!("alerting"));
                for (key, value) in self.alerting_rule(rule, policy, status) {
                    put(key, value);
                }
            }
        }
        put("name", json!(rule.name));
        put("query", json!(rule.expression));
        put("labels", json!(rule.labels));
        put("health", json!(health(&report)));
        if let Some(error) = &report.error {
            put("lastError", json!(error));
        }
        put("evaluationTime", json!(seconds));
        put("lastEvaluation", json!(time(status.evaluated_at)));
        Some(Value::Object(shown))
    }

    fn alerting_rule(
        &self,
        rule: &Rule,
        policy: &AlertPolicy,
        status: &GroupStatus,
    ) -> Vec<(&'static str, Value)> {
        let rank = |alert: &Alert| u8::from(alert.state.is_told());
        let state = match alerts_of(rule, status).map(rank).max() {
            None => AlertState::Inactive,
            Some(0) => AlertState::Pending,
            Some(_) => AlertState::Firing,
        };
        let mut shown = vec![
            ("state", json!(state.as_str())),
            ("duration", json!(policy.for_ms as f64 / 1000.0)),
            ("keepFiringFor", json!(policy.keep_firing_ms as f64 / 1000.0)),
            ("annotations", json!(policy.annotations)),
        ];
        if !self.without_alerts {
            let alerts: Vec<_> =
                alerts_of(rule, status).map(|own| alert(own, &self.silenced)).collect();
            shown.push(("alerts", json!(alerts)));
        }
        shown
    }
}

/// Without a report it was not evaluated yet.
fn health(report: &RuleReport) -> &'static str {
    match &report.error {
        _ if report.rule.is_empty() => "unknown",
        Some(_) => "err",
        None => "ok",
    }
}

fn alert(own: &Alert, Silenced { silences, external, at }: &Silenced<'_>) -> Value {
    let is_no_data = own.state == AlertState::NoData;
    let state = if is_no_data { AlertState::Firing } else { own.state };
    let mut shown = json!({
        "labels": own.labels,
        "annotations": own.annotations,
        "state": state.as_str(),
        "activeAt": time(Some(UnixMillis(own.active_at))),
        "value": exponent(own.value),
    });
    let mut put = |key: &str, value: Value| {
        if let Some(shown) = shown.as_object_mut() {
            shown.insert(key.to_owned(), value);
        }
    };
    if let Some(since) = own.keep_firing_since {
        put("keepFiringSince", json!(time(Some(UnixMillis(since)))));
    }
    if let Some(by) = &own.acknowledged {
        put("acknowledged", json!(by));
    }
    if is_no_data {
        put("noData", json!(true));
    }
    // Silences are of alerts as they go out.
    let silenced_by = silences.silencing(&external.labelled(&own.labels), *at);
    if !silenced_by.is_empty() {
        put("silencedBy", json!(silenced_by));
    }
    shown
}

/// RFC 3339; Go's zero time for none.
pub(super) fn time(at: Option<UnixMillis>) -> String {
    at.map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), |at| at.to_string())
}

/// As Go's format `e` writes it.
pub(super) fn exponent(value: f64) -> String {
    let mut out = Vec::new();
    if value.is_finite() {
        let written = push_exponent(value, &mut out);
        debug_assert!(written.is_ok(), "memory takes every write");
    } else {
        super::json::push_float(value, &mut out);
    }
    String::from_utf8_lossy(&out).into_owned()
}
