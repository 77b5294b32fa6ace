//! `rules` and `alerts`, as in Prometheus.
//!
//! Must never know: how rules are evaluated. An alert for missing data is shown as firing, with
//! `noData`, because clients only know three states.

use std::sync::Arc;

use actix_web::HttpResponse;
use serde_json::{Map, Value, json};

use super::{
    answer::{Answer, Data},
    fault::Fault,
    json::push_exponent,
    params::Params,
    query::fault,
    receive::{Call, Received, respond},
};
use crate::{
    alerts::{
        Action, Alert, AlertDeliveries, AlertPolicy, AlertState, ExternalIdentity, FileFault, Rule,
        RuleGroup, RuleReport, Silences, fingerprint, read_rules,
    },
    kept::GroupStatus,
    model::UnixMillis,
};

/// The estimated size of an alert, and of a rule without its alerts.
const ENTRY_BYTES: usize = 2048;
/// The interval of checked groups that do not set one; it does not affect the check.
const CHECKED_INTERVAL_MS: i64 = 60_000;

pub(super) async fn rules(received: Received) -> HttpResponse {
    respond("promql_status", received, |call| {
        let filter = RuleFilter::read(call)?;
        let (set, statuses) = call.parts.rules.groups();
        let entries = entries(&statuses);
        call.limits().reserve(entries * ENTRY_BYTES).map_err(fault)?;
        let both = set.groups.iter().zip(&statuses);
        let groups: Vec<_> =
            both.filter_map(|(group, status)| filter.group(group, status)).collect();
        Ok(Answer::new(Data::Json(json!({ "groups": groups }).to_string().into())))
    })
    .await
}

pub(super) async fn alerts(received: Received) -> HttpResponse {
    respond("promql_status", received, list_active).await
}

/// Checks whether a text is a valid rule file, for authors who have not installed it yet.
pub(super) async fn check(received: Received) -> HttpResponse {
    respond("promql_status", received, |call| {
        let text = call.params.get("rules").unwrap_or_default();
        let limits = call.limits();
        let groups = read_rules("rules", text, CHECKED_INTERVAL_MS, &limits).map_err(|faults| {
            let messages: Vec<_> = faults.iter().map(FileFault::to_string).collect();
            Fault::bad_data(messages.join("\n"))
        })?;
        let rules: usize = groups.iter().map(|group| group.rules.len()).sum();
        let found = json!({ "groups": groups.len(), "rules": rules });
        Ok(Answer::new(Data::Json(found.to_string().into())))
    })
    .await
}

fn list_active(call: &Call<'_>) -> Result<Answer, Fault> {
    let (set, statuses) = call.parts.rules.groups();
    // Alerts of files that cannot be read any more keep their state.
    let unread = call.parts.rules.unread();
    let entries = entries(&statuses) + entries(&unread);
    call.limits().reserve(entries * ENTRY_BYTES).map_err(fault)?;
    let notifications = NotificationsAtTime::now(call);
    let mut listed = Vec::new();
    for (group, status) in set.groups.iter().zip(&statuses) {
        for rule in &group.rules {
            listed.extend(active_alerts(rule, status).map(|found| alert(found, &notifications)));
        }
    }
    let rules = unread.iter().flat_map(|status| status.state.rules.values());
    let alerts = rules.flat_map(|rule| &rule.alerts).filter(|alert| alert.is_active());
    listed.extend(alerts.map(|found| alert(found, &notifications)));
    Ok(Answer::new(Data::Json(json!({ "alerts": listed }).to_string().into())))
}

/// Counts rules and alerts.
fn entries(statuses: &[Arc<GroupStatus>]) -> usize {
    let alerts = |status: &GroupStatus| -> usize {
        status.state.rules.values().map(|rule| rule.alerts.len()).sum()
    };
    statuses.iter().map(|status| status.reports.len() + alerts(status)).sum()
}

/// Returns the alerts that are pending or firing.
fn active_alerts<'a>(rule: &Rule, status: &'a GroupStatus) -> impl Iterator<Item = &'a Alert> {
    let state = status.state.rules.get(&rule.key);
    state.into_iter().flat_map(|rule| &rule.alerts).filter(|alert| alert.is_active())
}

/// The silences and the deliveries of alerts at one time.
struct NotificationsAtTime {
    silences: Arc<Silences>,
    external: Arc<ExternalIdentity>,
    deliveries: Arc<AlertDeliveries>,
    at: UnixMillis,
}

impl NotificationsAtTime {
    fn now(call: &Call<'_>) -> Self {
        let (parts, at) = (call.parts, call.parts.clock.now());
        let (silences, external) = (parts.silences.current(), parts.rules.external());
        Self { silences, external, deliveries: parts.rules.deliveries(), at }
    }
}

/// A selection of rules.
struct RuleFilter<'a> {
    params: &'a Params,
    notifications: NotificationsAtTime,
    alerting: bool,
    recording: bool,
    without_alerts: bool,
}

impl<'a> RuleFilter<'a> {
    fn read(call: &Call<'a>) -> Result<Self, Fault> {
        let params = call.params;
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
        let notifications = NotificationsAtTime::now(call);
        Ok(Self { params, notifications, alerting, recording, without_alerts })
    }

    /// Returns true when a parameter is missing or lists the name.
    fn selects(&self, parameter: &str, name: &str) -> bool {
        let mut listed = self.params.all(parameter).peekable();
        listed.peek().is_none() || listed.any(|value| value == name)
    }

    fn group(&self, group: &RuleGroup, status: &GroupStatus) -> Option<Value> {
        if !self.selects("file[]", &group.file) || !self.selects("rule_group[]", &group.name) {
            return None;
        }
        let has_rules = !group.rules.is_empty();
        let numbered = group.rules.iter().enumerate();
        let rules: Vec<_> = numbered
            .filter(|(_, rule)| self.selects("rule_name[]", &rule.name))
            .filter_map(|(index, rule)| self.rule(rule, index, status))
            .collect();
        if rules.is_empty() && has_rules {
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
        let mut listed = Map::new();
        let mut put = |key: &str, value: Value| drop(listed.insert(key.to_owned(), value));
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
        Some(Value::Object(listed))
    }

    fn alerting_rule(
        &self,
        rule: &Rule,
        policy: &AlertPolicy,
        status: &GroupStatus,
    ) -> Vec<(&'static str, Value)> {
        let rank = |alert: &Alert| u8::from(alert.state.is_notified());
        let state = match active_alerts(rule, status).map(rank).max() {
            None => AlertState::Inactive,
            Some(0) => AlertState::Pending,
            Some(_) => AlertState::Firing,
        };
        let mut listed = vec![
            ("state", json!(state.as_str())),
            ("duration", json!(policy.for_ms as f64 / 1000.0)),
            ("keepFiringFor", json!(policy.keep_firing_ms as f64 / 1000.0)),
            ("annotations", json!(policy.annotations)),
        ];
        if !self.without_alerts {
            let alerts: Vec<_> = active_alerts(rule, status)
                .map(|found| alert(found, &self.notifications))
                .collect();
            listed.push(("alerts", json!(alerts)));
        }
        listed
    }
}

/// Returns the health of a rule, which is unknown before its first evaluation.
fn health(report: &RuleReport) -> &'static str {
    match &report.error {
        _ if report.rule.is_empty() => "unknown",
        Some(_) => "err",
        None => "ok",
    }
}

fn alert(found: &Alert, notifications: &NotificationsAtTime) -> Value {
    let NotificationsAtTime { silences, external, deliveries, at } = notifications;
    let is_no_data = found.state == AlertState::NoData;
    let state = if is_no_data { AlertState::Firing } else { found.state };
    let mut listed = json!({
        "labels": found.labels,
        "annotations": found.annotations,
        "state": state.as_str(),
        "activeAt": time(Some(UnixMillis(found.active_at))),
        "value": exponent(found.value),
    });
    let mut put = |key: &str, value: Value| {
        if let Some(listed) = listed.as_object_mut() {
            listed.insert(key.to_owned(), value);
        }
    };
    if let Some(since) = found.keep_firing_since {
        put("keepFiringSince", json!(time(Some(UnixMillis(since)))));
    }
    if let Some(by) = &found.acknowledged {
        put("acknowledged", json!(by));
    }
    if is_no_data {
        put("noData", json!(true));
    }
    // Silences and notifications have the external labels of alerts.
    let labels = external.add_labels(&found.labels);
    let silenced_by = silences.silencing(&labels, *at);
    if !silenced_by.is_empty() {
        put("silencedBy", json!(silenced_by));
    }
    if !deliveries.is_empty()
        && let Some(delivered) = deliveries.get(&fingerprint(&labels))
    {
        put("deliveries", json!(delivered));
    }
    listed
}

/// Formats a time in RFC 3339; `None` becomes Go's zero time.
pub(super) fn time(at: Option<UnixMillis>) -> String {
    at.map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), |at| at.to_string())
}

/// Formats a number like Go's format `e`.
pub(super) fn exponent(value: f64) -> String {
    let mut out = Vec::new();
    if value.is_finite() {
        let written = push_exponent(value, &mut out);
        debug_assert!(written.is_ok(), "writing to memory cannot fail");
    } else {
        super::json::push_float(value, &mut out);
    }
    String::from_utf8_lossy(&out).into_owned()
}
