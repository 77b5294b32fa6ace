//! Which alerts an Alertmanager is told of now: those that fire, again and again, and those that
//! have ended, as Prometheus does (`rules/alerting.go`, `needsSending`).
//!
//! What fires is remembered with each evaluation, so nothing has to be queued: one that was away is
//! told what is so once it is back. Must never know: how it is told.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;

use super::{Alert, External, Http, LabelSet};
use crate::model::UnixMillis;

/// The interval at which a firing alert is sent again, in milliseconds: an Alertmanager that hears of it no
/// more takes it for ended.
const AGAIN_MS: i64 = 60_000;
/// After how many such times, or evaluations, of silence it does so.
const SILENT_TIMES: i64 = 4;

/// An alert as Alertmanager's API takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "they are Alertmanager's")]
pub struct ToldAlert {
    pub labels: LabelSet,
    pub annotations: LabelSet,
    pub starts_at: String,
    pub ends_at: String,
    #[serde(rename = "generatorURL")]
    pub generator_url: String,
    /// Since when it is over, by its evaluation; `None` while it fires.
    #[serde(skip)]
    resolved_at: Option<i64>,
}

impl ToldAlert {
    /// The alert as it goes out, with the external labels.
    #[must_use]
    pub fn outside(&self, external: &External) -> Self {
        Self { labels: external.labelled(&self.labels), ..self.clone() }
    }
}

/// Until when an alert counts as firing that is heard of no more.
pub fn fires_until(interval_ms: i64, now: UnixMillis) -> UnixMillis {
    now.plus(SILENT_TIMES.saturating_mul(interval_ms.max(AGAIN_MS)))
}

/// An Alertmanager that is told of alerts.
#[derive(Debug, Clone, PartialEq)]
pub struct Alertmanager {
    /// Its address without a slash at the end, such as `http://localhost:9093`.
    pub url: String,
    /// The settings of its HTTP client.
    pub http: Http,
}

/// The alerts that one Alertmanager was sent.
#[derive(Debug, Default)]
pub struct Telling {
    told: BTreeMap<LabelSet, Told>,
}

/// The last notifications of an alert. Times of evaluations lag behind the clock.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    /// The time of the last notification that it fires, by the clock.
    fires_at: Option<i64>,
    /// The end that was told, by its evaluation.
    ended: Option<i64>,
}

impl Telling {
    /// The alerts of which it is to be told now; each comes with the interval of its group and the link
    /// to its rule's expression. And when the same ones are to be told again, once these are.
    pub fn due<'a>(
        &self,
        alerts: impl Iterator<Item = (&'a Alert, i64, Arc<str>)>,
        now: UnixMillis,
    ) -> (Vec<ToldAlert>, UnixMillis) {
        let (mut due, mut next) = (Vec::new(), UnixMillis::MAX);
        for (alert, interval_ms, link) in alerts {
            let told = self.told.get(&alert.labels).copied().unwrap_or_default();
            let since = alert.fired_at.unwrap_or(alert.active_at);
            let (resolved_at, ends_at) = if alert.state.is_told() {
                let told = told
                    .fires_at
                    .filter(|at| *at >= since && (0..AGAIN_MS).contains(&(now.0 - at)));
                next = next.min(UnixMillis(told.unwrap_or(now.0)).plus(AGAIN_MS));
                if told.is_some() {
                    continue;
                }
                (None, fires_until(interval_ms, now))
            } else {
                // Only what was told to people has that. After a restart it is told once more.
                let Some(resolved) = alert.resolved_at else { continue };
                if told.ended == Some(resolved) {
                    continue;
                }
                (Some(resolved), UnixMillis(resolved.max(since)))
            };
            due.push(ToldAlert {
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

    /// Notes of what it was told at a time.
    pub fn note(&mut self, told: &[ToldAlert], at: UnixMillis) {
        for own in told {
            let told = self.told.entry(own.labels.clone()).or_default();
            match own.resolved_at {
                Some(_) => told.ended = own.resolved_at,
                None => told.fires_at = Some(at.0),
            }
        }
    }

    /// Removes alerts that are no longer tracked.
    pub fn retain(&mut self, is_known: impl Fn(&LabelSet) -> bool) {
        self.told.retain(|labels, _| is_known(labels));
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
    fn what_fires_is_told_each_minute_and_its_end_once() {
        let mut telling = Telling::default();
        let mut tell = |alert: &Alert, at: i64| {
            let (due, _) =
                telling.due([(alert, 15_000, Arc::from(""))].into_iter(), UnixMillis(at));
            telling.note(&due, UnixMillis(at));
            due.first().map(|told| (told.starts_at.clone(), told.ends_at.clone()))
        };
        let time = |ms: i64| UnixMillis(ms).to_string();
        let firing = alert(AlertState::Firing, None);
        assert_eq!(tell(&alert(AlertState::Pending, None), 10_000), None);
        assert_eq!(tell(&firing, 10_000), Some((time(2000), time(250_000))));
        assert_eq!(tell(&firing, 69_999), None);
        assert_eq!(tell(&firing, 70_000), Some((time(2000), time(310_000))));
        let ended = alert(AlertState::Inactive, Some(75_000));
        assert_eq!(tell(&ended, 76_000), Some((time(2000), time(75_000))));
        assert_eq!(tell(&ended, 900_000), None);
        let again = alert(AlertState::NoData, None);
        assert!(tell(&again, 900_001).is_some());
    }

    #[test]
    fn an_end_found_after_a_repeat_is_told_and_so_is_what_fires_again_soon() {
        let mut telling = Telling::default();
        let mut tell = |alert: &Alert, at: i64| {
            let (due, _) =
                telling.due([(alert, 15_000, Arc::from(""))].into_iter(), UnixMillis(at));
            telling.note(&due, UnixMillis(at));
            due.len()
        };
        assert_eq!(tell(&alert(AlertState::Firing, None), 2000), 1);
        // The evaluation of 60 s is through at 65 s; the repeat comes in between.
        assert_eq!(tell(&alert(AlertState::Firing, None), 62_000), 1);
        let ended = alert(AlertState::Inactive, Some(60_000));
        assert_eq!(tell(&ended, 65_000), 1);
        assert_eq!(tell(&ended, 66_000), 0);
        let again = Alert { fired_at: Some(67_000), ..alert(AlertState::Firing, None) };
        assert_eq!(tell(&again, 70_000), 1);
    }

    #[test]
    fn what_was_not_taken_is_told_again() {
        let telling = Telling::default();
        let firing = alert(AlertState::Firing, None);
        for at in [1, 2] {
            let (due, next) =
                telling.due([(&firing, 15_000, Arc::from("link"))].into_iter(), UnixMillis(at));
            assert_eq!((due.len(), next), (1, UnixMillis(at + AGAIN_MS)));
            assert_eq!(due[0].generator_url, "link");
        }
    }
}
