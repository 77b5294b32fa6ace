//! Alerts that other programs send, such as Prometheus servers and Loki, with the meaning of
//! Alertmanager's API v2 (github.com/prometheus/alertmanager, `api/v2/api.go` and
//! `types/types.go`).
//!
//! The alerts are kept in memory, as in Alertmanager: after a restart their senders send them
//! again. Must never know: HTTP, who is notified.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;

use super::{LabelSet, MessageAlert, fingerprint, is_label_name};
use crate::model::UnixMillis;

/// The maximum number of alerts, and the maximum size of all of them together, in bytes.
const ALERTS_MAX: usize = 10_000;
const BYTES_MAX: usize = 16 << 20;
/// The maximum number of labels, and of annotations, of an alert.
const PAIRS_MAX: usize = 64;
/// The maximum size of an alert, in bytes.
const ALERT_BYTES_MAX: usize = 64 << 10;
/// The time for which the end of an alert is remembered, in milliseconds, so that all groups see
/// it.
const ENDS_KEPT_MS: i64 = 900_000;
/// The maximum number of faults in a response.
const FAULTS_SHOWN: usize = 10;

/// An alert in a request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are Alertmanager's")]
pub struct PostableAlert {
    pub labels: LabelSet,
    pub annotations: Option<LabelSet>,
    pub starts_at: Option<String>,
    pub ends_at: Option<String>,
    #[serde(rename = "generatorURL")]
    pub generator_url: Option<String>,
}

/// The posted alerts, by labels.
#[derive(Debug, Default)]
pub struct PostedAlerts {
    all: BTreeMap<LabelSet, PostedAlert>,
    bytes: usize,
    /// The number of changes that receivers would notice.
    changes: u64,
    /// The time at which the next alert ends.
    next_end: Option<i64>,
}

/// A posted alert. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq)]
struct PostedAlert {
    annotations: LabelSet,
    generator_url: String,
    starts_at: i64,
    ends_at: i64,
    /// True when the sender named no end.
    is_timeout: bool,
    updated_at: i64,
}

/// The outcome of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PostOutcome {
    /// The number of accepted alerts.
    pub accepted: usize,
    /// The number of invalid alerts.
    pub invalid: usize,
    /// The faults of the first invalid alerts.
    pub faults: Vec<String>,
    /// The number of alerts for which there was no room.
    pub refused: usize,
}

/// A firing alert, the time of its last request, and its end if no other request follows.
pub type PostedFiring = (MessageAlert, UnixMillis, UnixMillis);

impl PostedAlerts {
    /// Accepts alerts. An alert without an end expires after `resolve_timeout_ms` without a further
    /// request.
    pub fn put(
        &mut self,
        alerts: Vec<PostableAlert>,
        resolve_timeout_ms: i64,
        now: UnixMillis,
    ) -> PostOutcome {
        let mut outcome = PostOutcome::default();
        let mut has_made_room = false;
        for alert in alerts {
            match parse_alert(alert, resolve_timeout_ms, now) {
                Ok((labels, alert)) => {
                    let is_accepted = self.accept(labels, alert, now, &mut has_made_room);
                    outcome.accepted += usize::from(is_accepted);
                    outcome.refused += usize::from(!is_accepted);
                }
                Err(fault) => {
                    outcome.invalid += 1;
                    if outcome.faults.len() < FAULTS_SHOWN {
                        outcome.faults.push(fault);
                    }
                }
            }
        }
        self.next_end = self.find_next_end(now);
        outcome
    }

    /// Returns whether there is no room for another alert of this size, in bytes.
    fn is_full(&self, size: usize) -> bool {
        self.all.len() >= ALERTS_MAX || self.bytes + size > BYTES_MAX
    }

    /// Adds an alert if there is room. Ended alerts are removed to make room, once per request.
    fn accept(
        &mut self,
        labels: LabelSet,
        alert: PostedAlert,
        now: UnixMillis,
        has_made_room: &mut bool,
    ) -> bool {
        let before = self.all.remove(&labels);
        let size = bytes(&labels, &alert);
        self.bytes -= before.as_ref().map_or(0, |posted| bytes(&labels, posted));
        if self.is_full(size) && !*has_made_room {
            self.retain(|posted| !posted.is_over(now));
            *has_made_room = true;
        }
        if self.is_full(size) {
            if let Some(before) = before {
                self.bytes += bytes(&labels, &before);
                self.all.insert(labels, before);
            }
            return false;
        }
        let alert = match &before {
            Some(before) if before.overlaps(&alert) => before.merged_with(alert, now),
            _ => alert,
        };
        let visible_state = |posted: &PostedAlert| {
            (
                posted.is_over(now),
                posted.starts_at,
                posted.annotations.clone(),
                posted.generator_url.clone(),
            )
        };
        self.changes +=
            u64::from(before.as_ref().map(visible_state) != Some(visible_state(&alert)));
        self.bytes += bytes(&labels, &alert);
        self.all.insert(labels, alert);
        true
    }

    fn retain(&mut self, is_kept: impl Fn(&PostedAlert) -> bool) {
        let total = &mut self.bytes;
        self.all.retain(|labels, posted| {
            let is_kept = is_kept(posted);
            *total -= if is_kept { 0 } else { bytes(labels, posted) };
            is_kept
        });
    }

    fn find_next_end(&self, now: UnixMillis) -> Option<i64> {
        self.all.values().map(|posted| posted.ends_at).filter(|end| *end > now.0).min()
    }

    /// Returns the number of changes, up to a time, that receivers would notice. While this number
    /// stays the same, callers need not list the alerts again.
    pub fn changes(&mut self, now: UnixMillis) -> u64 {
        if self.next_end.is_some_and(|end| end <= now.0) {
            self.changes += 1;
            self.retain(|posted| now.0.saturating_sub(posted.ends_at) <= ENDS_KEPT_MS);
            self.next_end = self.find_next_end(now);
        }
        self.changes
    }

    /// Returns the number of remembered alerts.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns whether no alert is remembered.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the firing alerts, and those that ended recently.
    pub fn message_alerts(&self, now: UnixMillis) -> Vec<MessageAlert> {
        self.all.iter().map(|(labels, posted)| posted.message_alert(labels, now)).collect()
    }

    /// Returns the firing alerts.
    pub fn firing(&self, now: UnixMillis) -> Vec<PostedFiring> {
        let firing = self.all.iter().filter(|(_, posted)| !posted.is_over(now));
        let shown = firing.map(|(labels, posted)| {
            (
                posted.message_alert(labels, now),
                UnixMillis(posted.updated_at),
                UnixMillis(posted.ends_at),
            )
        });
        shown.collect()
    }
}

impl PostedAlert {
    fn is_over(&self, now: UnixMillis) -> bool {
        self.ends_at <= now.0
    }

    /// Returns whether a newer alert begins or ends while this one fires.
    fn overlaps(&self, newer: &Self) -> bool {
        (newer.ends_at > self.starts_at && newer.ends_at < self.ends_at)
            || (newer.starts_at > self.starts_at && newer.starts_at < self.ends_at)
    }

    /// Merges a newer alert into this one: the earlier start counts, and the later end unless it is
    /// a timeout.
    fn merged_with(&self, newer: Self, now: UnixMillis) -> Self {
        let is_later = self.ends_at > newer.ends_at;
        let keeps_end =
            is_later && if newer.is_over(now) { self.is_over(now) } else { !self.is_timeout };
        Self {
            starts_at: self.starts_at.min(newer.starts_at),
            ends_at: if keeps_end { self.ends_at } else { newer.ends_at },
            ..newer
        }
    }

    fn message_alert(&self, labels: &LabelSet, now: UnixMillis) -> MessageAlert {
        MessageAlert {
            labels: labels.clone(),
            annotations: self.annotations.clone(),
            starts_at: self.starts_at,
            ends_at: self.is_over(now).then_some(self.ends_at),
            generator_url: self.generator_url.clone(),
            is_posted: true,
            ..MessageAlert::default()
        }
    }
}

/// Returns the approximate size of an alert in bytes.
fn bytes(labels: &LabelSet, posted: &PostedAlert) -> usize {
    let pairs = labels.iter().chain(&posted.annotations);
    let pairs = pairs.map(|(name, value)| name.len() + value.len() + 64);
    256 + posted.generator_url.len() + pairs.sum::<usize>()
}

/// Completes an alert of a request, or returns its fault.
fn parse_alert(
    alert: PostableAlert,
    resolve_timeout_ms: i64,
    now: UnixMillis,
) -> Result<(LabelSet, PostedAlert), String> {
    let mut labels = alert.labels;
    labels.retain(|_, value| !value.is_empty());
    let name = labels.get("alertname").map_or("", String::as_str);
    let fault = |problem: Cow<'_, str>| {
        let name: String = name.chars().take(100).collect();
        format!("alert {name:?} ({}): {problem}", fingerprint(&labels))
    };
    let annotations = alert.annotations.unwrap_or_default();
    if labels.is_empty() {
        return Err(fault("at least one label pair required".into()));
    }
    for (kind, pairs) in [("label", &labels), ("annotation", &annotations)] {
        if pairs.len() > PAIRS_MAX {
            return Err(fault(
                format!("{} {kind}s exceed the limit of {PAIRS_MAX}", pairs.len()).into(),
            ));
        }
        if let Some(name) = pairs.keys().find(|name| !is_label_name(name)) {
            let name: String = name.chars().take(100).collect();
            return Err(fault(format!("invalid {kind} name {name:?}").into()));
        }
    }
    let time = |key: &str, text: Option<String>| -> Result<Option<i64>, String> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
        let read = text.parse::<jiff::Timestamp>();
        let at = read.map_err(|cause| fault(format!("{key}: {cause}").into()))?.as_millisecond();
        // Go's zero time means that the field is not set.
        Ok((at > 0).then_some(at.min(UnixMillis::MAX.0)))
    };
    let (starts_at, ends_at) = (time("startsAt", alert.starts_at)?, time("endsAt", alert.ends_at)?);
    let starts_at = starts_at.or(ends_at).unwrap_or(now.0);
    if ends_at.is_some_and(|end| end < starts_at) {
        return Err(fault("start time must be before end time".into()));
    }
    let alert = PostedAlert {
        annotations,
        generator_url: alert.generator_url.unwrap_or_default(),
        starts_at,
        ends_at: ends_at.unwrap_or_else(|| now.0.saturating_add(resolve_timeout_ms)),
        is_timeout: ends_at.is_none(),
        updated_at: now.0,
    };
    let size = bytes(&labels, &alert);
    if size > ALERT_BYTES_MAX {
        return Err(fault(format!("{size} bytes exceed the limit of {ALERT_BYTES_MAX}").into()));
    }
    Ok((labels, alert))
}

#[cfg(test)]
mod tests;
