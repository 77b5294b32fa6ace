//! Selection of the alerts to send to an Alertmanager now: firing ones repeatedly, and ended ones
//! once, as Prometheus does (`rules/alerting.go`, `needsSending`).
//!
//! The rules' state contains all firing alerts, so nothing is queued: an Alertmanager that was
//! unreachable gets the current alerts when it is reachable again. Must never know: how alerts are
//! sent.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;

use super::{Alert, ExternalIdentity, Http, LabelSet};
use crate::model::UnixMillis;

/// The interval at which a firing alert is sent again, in milliseconds: an Alertmanager ends alerts
/// that it does not receive again.
const AGAIN_MS: i64 = 60_000;
/// The number of these intervals, or of longer intervals between evaluations, after which an
/// Alertmanager ends an alert that it does not receive again.
const SILENT_TIMES: i64 = 4;

/// An alert in the form of Alertmanager's API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are Alertmanager's")]
pub struct OutgoingAlert {
    pub labels: LabelSet,
    pub annotations: LabelSet,
    pub starts_at: String,
    pub ends_at: String,
    #[serde(rename = "generatorURL")]
    pub generator_url: String,
    /// The time of the evaluation that ended it; `None` while it fires.
    #[serde(skip)]
    resolved_at: Option<i64>,
}

impl OutgoingAlert {
    /// Returns the alert with the external labels.
    #[must_use]
    pub fn with_external_labels(&self, external: &ExternalIdentity) -> Self {
        Self { labels: external.add_labels(&self.labels), ..self.clone() }
    }
}

/// Returns the time until which an alert counts as firing without further news.
pub fn fires_until(interval_ms: i64, now: UnixMillis) -> UnixMillis {
    now.plus(SILENT_TIMES.saturating_mul(interval_ms.max(AGAIN_MS)))
}

/// An Alertmanager that receives alerts.
#[derive(Debug, Clone, PartialEq)]
pub struct Alertmanager {
    /// The address without a slash at the end, such as `http://localhost:9093`.
    pub url: String,
    /// The settings of its HTTP client.
    pub http: Http,
}

/// The alerts that were sent to one Alertmanager.
#[derive(Debug, Default)]
pub struct SentAlerts {
    by_labels: BTreeMap<LabelSet, SentNotification>,
}

/// The last notifications of an alert. The times of evaluations lag behind the clock.
#[derive(Debug, Clone, Copy, Default)]
struct SentNotification {
    /// The time of the last notification that it fires, by the clock.
    fires_at: Option<i64>,
    /// The end in the last notification, as the time of its evaluation.
    ended: Option<i64>,
}

impl SentAlerts {
    /// Returns the alerts to send now, and the time at which a firing alert is next sent again.
    /// Each of `alerts` has the interval of its group and the link to its rule's expression.
    pub fn due<'a>(
        &self,
        alerts: impl Iterator<Item = (&'a Alert, i64, Arc<str>)>,
        now: UnixMillis,
    ) -> (Vec<OutgoingAlert>, UnixMillis) {
        let (mut due, mut next) = (Vec::new(), UnixMillis::MAX);
        for (alert, interval_ms, link) in alerts {
            let sent = self.by_labels.get(&alert.labels).copied().unwrap_or_default();
            let since = alert.fired_at.unwrap_or(alert.active_at);
            let (resolved_at, ends_at) = if alert.state.is_notified() {
                let sent_at = sent
                    .fires_at
                    .filter(|at| *at >= since && (0..AGAIN_MS).contains(&(now.0 - at)));
                next = next.min(UnixMillis(sent_at.unwrap_or(now.0)).plus(AGAIN_MS));
                if sent_at.is_some() {
                    continue;
                }
                (None, fires_until(interval_ms, now))
            } else {
                // Only an alert that receivers were notified of has an end here. After a restart,
                // the end is sent once more.
                let Some(resolved) = alert.resolved_at else { continue };
                if sent.ended == Some(resolved) {
                    continue;
                }
                (Some(resolved), UnixMillis(resolved.max(since)))
            };
            due.push(OutgoingAlert {
                labels: alert.labels.clone(),
                annotations: alert.annotations.clone(),
                starts_at: UnixMillis(since).to_string(),
                ends_at: ends_at.to_string(),
                generator_url: link.to_string(),
                resolved_at,
            });
        }
        (due, next)
    }

    /// Records the alerts that were sent at a time.
    pub fn record_sent(&mut self, alerts: &[OutgoingAlert], at: UnixMillis) {
        for alert in alerts {
            let sent = self.by_labels.entry(alert.labels.clone()).or_default();
            match alert.resolved_at {
                Some(_) => sent.ended = alert.resolved_at,
                None => sent.fires_at = Some(at.0),
            }
        }
    }

    /// Removes alerts that are no longer tracked.
    pub fn retain(&mut self, is_known: impl Fn(&LabelSet) -> bool) {
        self.by_labels.retain(|labels, _| is_known(labels));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::AlertState;

    fn alert(state: AlertState, resolved_at: Option<i64>) -> Alert {
        let labels = [("alertname".to_owned(), "A".to_owned())].into();
        Alert {
            state,
            active_at: 1000,
            fired_at: Some(2000),
            resolved_at,
            ..Alert::inactive(labels)
        }
    }

    #[test]
    fn a_firing_alert_is_sent_each_minute_and_its_end_once() {
        let mut sent_alerts = SentAlerts::default();
        let mut send = |alert: &Alert, at: i64| {
            let (due, _) =
                sent_alerts.due([(alert, 15_000, Arc::from(""))].into_iter(), UnixMillis(at));
            sent_alerts.record_sent(&due, UnixMillis(at));
            due.first().map(|alert| (alert.starts_at.clone(), alert.ends_at.clone()))
        };
        let time = |ms: i64| UnixMillis(ms).to_string();
        let firing = alert(AlertState::Firing, None);
        assert_eq!(send(&alert(AlertState::Pending, None), 10_000), None);
        assert_eq!(send(&firing, 10_000), Some((time(2000), time(250_000))));
        assert_eq!(send(&firing, 69_999), None);
        assert_eq!(send(&firing, 70_000), Some((time(2000), time(310_000))));
        let ended = alert(AlertState::Inactive, Some(75_000));
        assert_eq!(send(&ended, 76_000), Some((time(2000), time(75_000))));
        assert_eq!(send(&ended, 900_000), None);
        let no_data = alert(AlertState::NoData, None);
        assert!(send(&no_data, 900_001).is_some());
    }

    #[test]
    fn an_end_found_after_a_repeat_is_sent_and_so_is_an_alert_that_soon_fires_again() {
        let mut sent_alerts = SentAlerts::default();
        let mut send = |alert: &Alert, at: i64| {
            let (due, _) =
                sent_alerts.due([(alert, 15_000, Arc::from(""))].into_iter(), UnixMillis(at));
            sent_alerts.record_sent(&due, UnixMillis(at));
            due.len()
        };
        assert_eq!(send(&alert(AlertState::Firing, None), 2000), 1);
        // The evaluation for 60 s ends at 65 s; the alert is sent again in between.
        assert_eq!(send(&alert(AlertState::Firing, None), 62_000), 1);
        let ended = alert(AlertState::Inactive, Some(60_000));
        assert_eq!(send(&ended, 65_000), 1);
        assert_eq!(send(&ended, 66_000), 0);
        let firing = Alert { fired_at: Some(67_000), ..alert(AlertState::Firing, None) };
        assert_eq!(send(&firing, 70_000), 1);
    }

    #[test]
    fn an_alert_that_was_not_accepted_is_sent_again() {
        let sent_alerts = SentAlerts::default();
        let firing = alert(AlertState::Firing, None);
        for at in [1, 2] {
            let (due, next) =
                sent_alerts.due([(&firing, 15_000, Arc::from("link"))].into_iter(), UnixMillis(at));
            assert_eq!((due.len(), next), (1, UnixMillis(at + AGAIN_MS)));
            assert_eq!(due[0].generator_url, "link");
        }
    }
}
