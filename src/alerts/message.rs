//! The message to a receiver about a group of alerts, and Alertmanager's JSON of it.
//!
//! Must never know: how messages are sent.

use std::{cmp::Ordering, collections::BTreeMap};

use serde::{Deserialize, Serialize};

use crate::{
    alerts::{Alert, ExternalIdentity, LEFT_OUT, LabelSet, fingerprint},
    model::UnixMillis,
};

/// Go's zero time.
const NO_TIME: &str = "0001-01-01T00:00:00Z";

/// An alert in a notification. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MessageAlert {
    /// The labels.
    pub labels: LabelSet,
    /// The annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: LabelSet,
    /// The time since which it has been firing.
    pub starts_at: i64,
    /// The time of its end; `None` while it fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<i64>,
    /// The person who acknowledged it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_by: Option<String>,
    /// The link to its rule's expression; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub generator_url: String,
    /// True for a posted alert: after a restart it is unknown until it is sent again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_posted: bool,
    /// The number of other alerts of its rule that have no record.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
    /// The interval of its rule, in milliseconds: the alert's state may be that old.
    #[serde(skip)]
    pub interval_ms: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The content of one notification.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Message {
    /// The receiver's name.
    pub receiver: String,
    /// The alerts, in Alertmanager's order.
    pub alerts: Vec<MessageAlert>,
    /// The labels by which the route groups the alerts.
    pub group_labels: LabelSet,
    /// The key of the group, in Alertmanager's form.
    pub group_key: String,
    /// The address of the daemon's page; empty if it is unknown.
    pub external_url: String,
    /// The number of firing alerts of the group that are not listed.
    pub left_out: usize,
    /// The number of ended alerts that the previous message only counted, when the whole group has
    /// ended.
    pub ended_left_out: usize,
    /// The time of the decision, Unix milliseconds: a repetition has another time, and a retry has
    /// the same time.
    pub decided_at: i64,
}

impl MessageAlert {
    /// Returns the alert of a rule for messages, if it fires or has an end to send.
    pub fn new(alert: &Alert) -> Option<Self> {
        let is_notified = alert.state.is_notified();
        let starts_at = alert.fired_at.unwrap_or(alert.active_at);
        let ends_at = if is_notified { None } else { Some(alert.resolved_at?.max(starts_at)) };
        let represents_others = alert.labels.contains_key(LEFT_OUT);
        Some(Self {
            labels: alert.labels.clone(),
            annotations: alert.annotations.clone(),
            starts_at,
            ends_at,
            acknowledged_by: alert
                .acknowledged
                .as_ref()
                .map(|acknowledgement| acknowledgement.by.clone()),
            more: if represents_others && is_notified {
                (alert.value as usize).saturating_sub(1)
            } else {
                0
            },
            generator_url: String::new(),
            is_posted: false,
            interval_ms: 0,
        })
    }

    /// Completes the outgoing alert: external labels, and a link to its rule's expression.
    #[must_use]
    pub fn with_external_labels(
        mut self,
        external: &ExternalIdentity,
        generator_url: &str,
    ) -> Self {
        self.labels = external.add_labels(&self.labels);
        generator_url.clone_into(&mut self.generator_url);
        self
    }

    /// Returns true while the alert fires.
    pub fn is_firing(&self) -> bool {
        self.ends_at.is_none()
    }

    /// Returns Alertmanager's status: `firing` or `resolved`.
    pub fn status(&self) -> &'static str {
        if self.is_firing() { "firing" } else { "resolved" }
    }

    /// Returns Alertmanager's fingerprint: a hash of the labels.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.labels)
    }
}

impl Message {
    /// Sorts alerts in Alertmanager's order.
    pub(super) fn sort(alerts: &mut [MessageAlert]) {
        alerts.sort_by(|left, right| order_by_job(&left.labels, &right.labels));
    }

    /// Returns Alertmanager's status: `firing` while one of the alerts fires.
    pub fn status(&self) -> &'static str {
        let is_firing = self.left_out > 0 || self.alerts.iter().any(MessageAlert::is_firing);
        if is_firing { "firing" } else { "resolved" }
    }

    /// Returns the number of alerts of the group that the message only counts.
    pub fn unlisted_count(&self) -> usize {
        self.left_out + self.ended_left_out
    }

    /// Returns the line about alerts that are not listed, for texts.
    pub fn unlisted_line(&self) -> Option<String> {
        match self.unlisted_count() {
            0 => None,
            1 => Some("and 1 more alert".to_owned()),
            count => Some(format!("and {count} more alerts")),
        }
    }

    /// Returns the address of the page that lists all alerts, if it is known.
    pub fn alerts_url(&self) -> Option<String> {
        (!self.external_url.is_empty()).then(|| format!("{}/alerts", self.external_url))
    }

    /// Returns the common labels and annotations of all alerts.
    pub fn common(&self) -> (LabelSet, LabelSet) {
        (
            common(self.alerts.iter().map(|alert| &alert.labels)),
            common(self.alerts.iter().map(|alert| &alert.annotations)),
        )
    }

    /// Returns the document that Alertmanager posts to webhooks, version 4, with at most
    /// `alerts_max` alerts; 0: all of them.
    pub fn to_json(&self, alerts_max: usize) -> String {
        let shown = if alerts_max == 0 { self.alerts.len() } else { alerts_max };
        let alerts: Vec<_> = self.alerts.iter().take(shown).map(JsonAlert::new).collect();
        let (common_labels, common_annotations) = self.common();
        let document = Document {
            receiver: &self.receiver,
            status: self.status(),
            group_labels: &self.group_labels,
            common_labels,
            common_annotations,
            external_url: &self.external_url,
            version: "4",
            group_key: &self.group_key,
            truncated_alerts: self.alerts.len() - alerts.len() + self.unlisted_count(),
            alerts,
        };
        // All keys are texts, so the serialization cannot fail.
        serde_json::to_string(&document).unwrap_or_default()
    }
}

/// Returns the pairs that all maps contain.
fn common<'a>(mut all: impl Iterator<Item = &'a LabelSet>) -> LabelSet {
    let mut pairs = all.next().cloned().unwrap_or_default();
    for labels in all {
        pairs.retain(|name, value| labels.get(name) == Some(value));
    }
    pairs
}

/// Compares alerts in Alertmanager's order: by job, by instance, by all labels.
pub fn order_by_job(left: &LabelSet, right: &LabelSet) -> Ordering {
    let order_by_label = |name: &str| match (left.get(name), right.get(name)) {
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (left, right) => left.cmp(&right),
    };
    order_by_label("job")
        .then(order_by_label("instance"))
        .then_with(|| order_by_labels(left, right))
}

/// Compares label sets in Alertmanager's order: smaller sets first, then by the first name whose
/// values differ; a missing value precedes any other.
pub fn order_by_labels(left: &LabelSet, right: &LabelSet) -> Ordering {
    let mut names: Vec<_> = left.keys().chain(right.keys()).collect();
    names.sort();
    left.len().cmp(&right.len()).then_with(|| {
        let orders = names.into_iter().map(|name| left.get(name).cmp(&right.get(name)));
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    receiver: &'a str,
    status: &'static str,
    alerts: Vec<JsonAlert<'a>>,
    group_labels: &'a LabelSet,
    common_labels: LabelSet,
    common_annotations: LabelSet,
    #[serde(rename = "externalURL")]
    external_url: &'a str,
    version: &'static str,
    group_key: &'a str,
    truncated_alerts: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonAlert<'a> {
    status: &'static str,
    labels: &'a LabelSet,
    annotations: &'a LabelSet,
    starts_at: String,
    ends_at: String,
    #[serde(rename = "generatorURL")]
    generator_url: &'a str,
    fingerprint: String,
}

impl<'a> JsonAlert<'a> {
    fn new(alert: &'a MessageAlert) -> Self {
        let ends_at = alert.ends_at.map(|at| UnixMillis(at).to_string());
        Self {
            status: alert.status(),
            labels: &alert.labels,
            annotations: &alert.annotations,
            starts_at: UnixMillis(alert.starts_at).to_string(),
            ends_at: ends_at.unwrap_or_else(|| NO_TIME.to_owned()),
            generator_url: &alert.generator_url,
            fingerprint: alert.fingerprint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> LabelSet {
        let pair = |part: &str| {
            part.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        text.split(' ').filter_map(pair).collect()
    }

    fn alert(text: &str, ends_at: Option<i64>) -> MessageAlert {
        let annotations = labels("summary=high");
        let (labels, starts_at) = (labels(text), 1_795_305_600_000);
        MessageAlert { labels, annotations, starts_at, ends_at, ..MessageAlert::default() }
    }

    #[test]
    fn the_document_has_the_form_of_alertmanagers_webhook() {
        let message = Message {
            receiver: "team".to_owned(),
            alerts: vec![
                alert("alertname=A x=1", None),
                alert("alertname=A x=2", Some(1_795_309_200_500)),
            ],
            group_labels: labels("alertname=A"),
            group_key: "{}:{alertname=\"A\"}".to_owned(),
            left_out: 3,
            ended_left_out: 0,
            decided_at: 0,
            external_url: "http://example.org".to_owned(),
        };
        let expected = r#"{"receiver":"team","status":"firing","alerts":[{"status":"firing","labels":{"alertname":"A","x":"1"},"annotations":{"summary":"high"},"startsAt":"2026-11-22T00:00:00Z","endsAt":"0001-01-01T00:00:00Z","generatorURL":"","fingerprint":"FIRST"}],"groupLabels":{"alertname":"A"},"commonLabels":{"alertname":"A"},"commonAnnotations":{"summary":"high"},"externalURL":"http://example.org","version":"4","groupKey":"{}:{alertname=\"A\"}","truncatedAlerts":4}"#;
        let expected = expected.replace("FIRST", &fingerprint(&labels("alertname=A x=1")));
        assert_eq!(message.to_json(1), expected);
        let document: serde_json::Value = serde_json::from_str(&message.to_json(0)).unwrap();
        assert_eq!(document["alerts"][1]["endsAt"], "2026-11-22T01:00:00.5Z");
        assert_eq!(document["truncatedAlerts"], 3);
    }

    #[test]
    fn alerts_are_in_alertmanagers_order() {
        let texts = [
            "z=1",
            "a=1 b=2",
            "b=1",
            "a=1",
            "instance=b",
            "instance=a",
            "job=b",
            "job=a instance=z",
        ];
        let mut alerts: Vec<_> = texts.iter().map(|text| alert(text, None)).collect();
        Message::sort(&mut alerts);
        let sorted: Vec<_> = alerts.into_iter().map(|alert| alert.labels).collect();
        let expected = [
            "job=a instance=z",
            "job=b",
            "instance=a",
            "instance=b",
            "z=1",
            "b=1",
            "a=1",
            "a=1 b=2",
        ];
        assert_eq!(sorted, expected.map(labels));
    }
}
