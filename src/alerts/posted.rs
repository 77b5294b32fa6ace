//! Alerts that other programs send, such as Prometheus servers and Loki, by the rules of
//! Alertmanager's API v2 (github.com/prometheus/alertmanager, `api/v2/api.go` and
//! `types/types.go`).
//!
//! The alerts are kept in memory, as in Alertmanager: after a restart their senders send them
//! again. Must never know: HTTP, who is told.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;

use super::{LabelSet, MessageAlert, fingerprint, is_label_name};
use crate::model::UnixMillis;

/// Alerts, at most, and bytes of all of them.
const ALERTS_MAX: usize = 10_000;
const BYTES_MAX: usize = 16 << 20;
/// Labels of an alert, and annotations, at most each.
const PAIRS_MAX: usize = 64;
/// Bytes of an alert.
const ALERT_BYTES_MAX: usize = 64 << 10;
/// How long the end of an alert is remembered, in milliseconds: until all groups have seen it.
const ENDS_KEPT_MS: i64 = 900_000;
/// Faults that an answer lists, at most.
const FAULTS_SHOWN: usize = 10;

/// An alert as it is sent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "they are Alertmanager's")]
pub struct PostableAlert {
    pub labels: LabelSet,
    pub annotations: Option<LabelSet>,
    pub starts_at: Option<String>,
    pub ends_at: Option<String>,
    #[serde(rename = "generatorURL")]
    pub generator_url: Option<String>,
}

/// The alerts that were sent, by their labels.
#[derive(Debug, Default)]
pub struct Posted {
    all: BTreeMap<LabelSet, PostedAlert>,
    bytes: usize,
    /// How often people would have been told something else.
    changes: u64,
    /// The time at which the next alert ends.
    next_end: Option<i64>,
}

/// An alert that was sent. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq)]
struct PostedAlert {
    annotations: LabelSet,
    generator_url: String,
    starts_at: i64,
    ends_at: i64,
    /// Whether the sender named no end.
    is_timeout: bool,
    updated_at: i64,
}

/// The outcome of a request that sends alerts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PostOutcome {
    /// Alerts that were taken.
    pub taken: usize,
    /// Alerts that cannot be, and what is wrong with the first of them.
    pub invalid: usize,
    /// The faults of the first invalid alerts.
    pub faults: Vec<String>,
    /// Alerts for which there was no room.
    pub refused: usize,
}

/// An alert that fires, with when its sender was heard last and when it ends without further news.
pub type PostedFiring = (MessageAlert, UnixMillis, UnixMillis);

impl Posted {
    /// Takes alerts. One without an end counts as over after a time, in milliseconds.
    pub fn put(
        &mut self,
        alerts: Vec<PostableAlert>,
        resolve_timeout_ms: i64,
        now: UnixMillis,
    ) -> PostOutcome {
        let mut outcome = PostOutcome::default();
        for alert in alerts {
            match checked(alert, resolve_timeout_ms, now) {
                Ok((labels, alert)) => {
                    let is_taken = self.take(labels, alert, now);
                    outcome.taken += usize::from(is_taken);
                    outcome.refused += usize::from(!is_taken);
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

    /// Takes an alert where there is room, if need be of alerts that are over.
    fn take(&mut self, labels: LabelSet, alert: PostedAlert, now: UnixMillis) -> bool {
        let before = self.all.remove(&labels);
        let size = bytes(&labels, &alert);
        self.bytes -= before.as_ref().map_or(0, |own| bytes(&labels, own));
        let is_full = self.all.len() >= ALERTS_MAX || self.bytes + size > BYTES_MAX;
        if is_full {
            self.retain(|own| !own.is_over(now));
        }
        if self.all.len() >= ALERTS_MAX || self.bytes + size > BYTES_MAX {
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
        let told = |own: &PostedAlert| {
            (own.is_over(now), own.starts_at, own.annotations.clone(), own.generator_url.clone())
        };
        self.changes += u64::from(before.as_ref().map(told) != Some(told(&alert)));
        self.bytes += bytes(&labels, &alert);
        self.all.insert(labels, alert);
        true
    }

    fn retain(&mut self, is_kept: impl Fn(&PostedAlert) -> bool) {
        let left = &mut self.bytes;
        self.all.retain(|labels, own| {
            let is_kept = is_kept(own);
            *left -= if is_kept { 0 } else { bytes(labels, own) };
            is_kept
        });
    }

    fn find_next_end(&self, now: UnixMillis) -> Option<i64> {
        self.all.values().map(|own| own.ends_at).filter(|end| *end > now.0).min()
    }

    /// How often people would have been told something else up to a time: whoever remembers the
    /// number need not look again while it is the same.
    pub fn changes(&mut self, now: UnixMillis) -> u64 {
        if self.next_end.is_some_and(|end| end <= now.0) {
            self.changes += 1;
            self.retain(|own| now.0.saturating_sub(own.ends_at) <= ENDS_KEPT_MS);
            self.next_end = self.find_next_end(now);
        }
        self.changes
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether none is remembered.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All alerts that fire, and those that have ended lately.
    pub fn told(&self, now: UnixMillis) -> Vec<MessageAlert> {
        self.all.iter().map(|(labels, own)| own.told(labels, now)).collect()
    }

    /// The alerts that fire.
    pub fn firing(&self, now: UnixMillis) -> Vec<PostedFiring> {
        let firing = self.all.iter().filter(|(_, own)| !own.is_over(now));
        let shown = firing.map(|(labels, own)| {
            (own.told(labels, now), UnixMillis(own.updated_at), UnixMillis(own.ends_at))
        });
        shown.collect()
    }
}

impl PostedAlert {
    fn is_over(&self, now: UnixMillis) -> bool {
        self.ends_at <= now.0
    }

    /// Whether a newer one is about the same time in which it fired.
    fn overlaps(&self, newer: &Self) -> bool {
        (newer.ends_at > self.starts_at && newer.ends_at < self.ends_at)
            || (newer.starts_at > self.starts_at && newer.starts_at < self.ends_at)
    }

    /// The alert with the fields of a newer one: the earlier beginning counts, and the later end
    /// unless nobody named it.
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

    fn told(&self, labels: &LabelSet, now: UnixMillis) -> MessageAlert {
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

/// The approximate size of an alert in bytes.
fn bytes(labels: &LabelSet, own: &PostedAlert) -> usize {
    let pairs = labels.iter().chain(&own.annotations);
    let pairs = pairs.map(|(name, value)| name.len() + value.len() + 64);
    256 + own.generator_url.len() + pairs.sum::<usize>()
}

/// An alert with all that its sender left out, or what is wrong with it.
fn checked(
    own: PostableAlert,
    resolve_timeout_ms: i64,
    now: UnixMillis,
) -> Result<(LabelSet, PostedAlert), String> {
    let mut labels = own.labels;
    labels.retain(|_, value| !value.is_empty());
    let name = labels.get("alertname").map_or("", String::as_str);
    let fault = |problem: Cow<'_, str>| {
        let name: String = name.chars().take(100).collect();
        format!("alert {name:?} ({}): {problem}", fingerprint(&labels))
    };
    let annotations = own.annotations.unwrap_or_default();
    if labels.is_empty() {
        return Err(fault("at least one label pair required".into()));
    }
    for (what, pairs) in [("label", &labels), ("annotation", &annotations)] {
        if pairs.len() > PAIRS_MAX {
            return Err(fault(format!("{} {what}s are more than {PAIRS_MAX}", pairs.len()).into()));
        }
        if let Some(name) = pairs.keys().find(|name| !is_label_name(name)) {
            let name: String = name.chars().take(100).collect();
            return Err(fault(format!("invalid {what} name {name:?}").into()));
        }
    }
    let time = |key: &str, text: Option<String>| -> Result<Option<i64>, String> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
        let read = text.parse::<jiff::Timestamp>();
        let at = read.map_err(|cause| fault(format!("{key}: {cause}").into()))?.as_millisecond();
        // Go's zero time stands for none.
        Ok((at > 0).then_some(at.min(UnixMillis::MAX.0)))
    };
    let (starts_at, ends_at) = (time("startsAt", own.starts_at)?, time("endsAt", own.ends_at)?);
    let starts_at = starts_at.or(ends_at).unwrap_or(now.0);
    if ends_at.is_some_and(|end| end < starts_at) {
        return Err(fault("start time must be before end time".into()));
    }
    let alert = PostedAlert {
        annotations,
        generator_url: own.generator_url.unwrap_or_default(),
        starts_at,
        ends_at: ends_at.unwrap_or_else(|| now.0.saturating_add(resolve_timeout_ms)),
        is_timeout: ends_at.is_none(),
        updated_at: now.0,
    };
    let size = bytes(&labels, &alert);
    if size > ALERT_BYTES_MAX {
        return Err(fault(format!("{size} bytes are more than {ALERT_BYTES_MAX}").into()));
    }
    Ok((labels, alert))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: i64 = 300_000;
    const NOW: UnixMillis = UnixMillis(1_795_305_600_000);

    fn alert(labels: &str, starts_at: Option<i64>, ends_at: Option<i64>) -> PostableAlert {
        let text = |at: Option<i64>| at.map(|at| UnixMillis(NOW.0 + at).to_string());
        let pairs = labels.split(' ').filter_map(|pair| pair.split_once('='));
        PostableAlert {
            labels: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            starts_at: text(starts_at),
            ends_at: text(ends_at),
            ..PostableAlert::default()
        }
    }

    /// Begin and end of the only alert, from now, and whether it fires.
    fn only(posted: &Posted, now: UnixMillis) -> (i64, Option<i64>) {
        let told = posted.told(now);
        assert_eq!(told.len(), 1, "{told:?}");
        (told[0].starts_at - NOW.0, told[0].ends_at.map(|at| at - NOW.0))
    }

    #[test]
    fn times_that_are_left_out_are_alertmanagers() {
        let taken = |starts_at, ends_at| {
            let mut posted = Posted::default();
            let outcome = posted.put(vec![alert("a=b", starts_at, ends_at)], TIMEOUT, NOW);
            assert_eq!(outcome.taken, 1, "{outcome:?}");
            only(&posted, NOW)
        };
        assert_eq!(taken(None, None), (0, None));
        assert_eq!(taken(Some(-7), None), (-7, None));
        assert_eq!(taken(None, Some(-5)), (-5, Some(-5)));
        assert_eq!(taken(Some(-7), Some(9)), (-7, None));
    }

    #[test]
    fn what_is_heard_of_no_more_ends_after_the_resolve_timeout_and_is_news_once() {
        let mut posted = Posted::default();
        let post = || vec![alert("a=b", None, None)];
        posted.put(post(), TIMEOUT, NOW);
        let first = posted.changes(NOW);
        // Sent again it goes on, and that is no news.
        posted.put(post(), TIMEOUT, NOW.plus(60_000));
        assert_eq!(posted.changes(NOW.plus(60_000)), first);
        assert_eq!(only(&posted, NOW.plus(TIMEOUT)), (0, None));
        assert_eq!(posted.changes(NOW.plus(TIMEOUT)), first);
        let end = 60_000 + TIMEOUT;
        assert_eq!(only(&posted, NOW.plus(end)), (0, Some(end)));
        assert_eq!(posted.changes(NOW.plus(end)), first + 1);
        assert_eq!(posted.changes(NOW.plus(end + 1)), first + 1);
        assert!(posted.firing(NOW.plus(end)).is_empty());
        // The next one is another time in which it fires.
        posted.put(vec![alert("a=b", Some(end + 9), None)], TIMEOUT, NOW.plus(end + 10));
        assert_eq!(only(&posted, NOW.plus(end + 10)), (end + 9, None));
    }

    #[test]
    fn several_senders_of_one_alert_are_merged_as_by_alertmanager() {
        let merged = |first: (i64, Option<i64>), second: (i64, Option<i64>)| {
            let mut posted = Posted::default();
            for (starts_at, ends_at) in [first, second] {
                posted.put(vec![alert("a=b", Some(starts_at), ends_at)], TIMEOUT, NOW);
            }
            only(&posted, NOW)
        };
        // The earlier beginning counts.
        assert_eq!(merged((-60, Some(600)), (-20, Some(900))), (-60, None));
        // An end that was named goes before one that was not, while it is later.
        let mut posted = Posted::default();
        posted.put(vec![alert("a=b", Some(-60), Some(2 * TIMEOUT))], TIMEOUT, NOW);
        posted.put(vec![alert("a=b", Some(-20), None)], TIMEOUT, NOW);
        assert_eq!(only(&posted, NOW.plus(2 * TIMEOUT - 1)), (-60, None));
        // One that has ended ends it, whatever was expected.
        assert_eq!(merged((-60, Some(600)), (-20, Some(-10))), (-60, Some(-10)));
        // Of two ends that are past, the later one.
        assert_eq!(merged((-60, Some(-10)), (-50, Some(-20))), (-60, Some(-10)));
    }

    #[test]
    fn what_cannot_be_is_named_and_the_others_are_taken() {
        let mut posted = Posted::default();
        let long = format!("a={}", "x".repeat(ALERT_BYTES_MAX));
        let many: Vec<_> = (0..=PAIRS_MAX).map(|at| format!("l{at}=x")).collect();
        let many = many.join(" ");
        let bad = [
            (alert("", None, None), "at least one label"),
            (alert("a=", None, None), "at least one label"),
            (alert("a-b=c", None, None), "invalid label name"),
            (alert("a=b", Some(10), Some(5)), "start time must be before end time"),
            (alert(&long, None, None), "bytes are more than"),
            (alert(&many, None, None), "labels are more than"),
            (
                PostableAlert { starts_at: Some("soon".to_owned()), ..alert("a=b", None, None) },
                "startsAt",
            ),
        ];
        for (own, expected) in bad {
            let outcome = posted.put(vec![own, alert("good=1", None, None)], TIMEOUT, NOW);
            assert_eq!((outcome.taken, outcome.invalid), (1, 1), "{outcome:?}");
            assert!(outcome.faults[0].contains(expected), "{outcome:?}");
        }
        let zero = PostableAlert {
            starts_at: Some("0001-01-01T00:00:00Z".to_owned()),
            ends_at: Some("0001-01-01T00:00:00.000Z".to_owned()),
            ..alert("zero=1", None, None)
        };
        assert_eq!(posted.put(vec![zero], TIMEOUT, NOW).taken, 1);
    }

    #[test]
    fn there_is_room_for_so_many_and_ended_ones_make_room() {
        let mut posted = Posted::default();
        let some = |from: usize, count: usize, ends_at: Option<i64>| {
            (from..from + count)
                .map(|at| alert(&format!("a={at}"), Some(-100), ends_at))
                .collect::<Vec<_>>()
        };
        let outcome = posted.put(some(0, ALERTS_MAX + 5, None), TIMEOUT, NOW);
        assert_eq!((outcome.taken, outcome.refused), (ALERTS_MAX, 5));
        // Those that are there go on, and one that ends makes room.
        assert_eq!(posted.put(some(0, 1, None), TIMEOUT, NOW).taken, 1);
        assert_eq!(posted.put(some(3, 1, Some(-1)), TIMEOUT, NOW).taken, 1);
        let outcome = posted.put(some(ALERTS_MAX, 2, None), TIMEOUT, NOW);
        assert_eq!((outcome.taken, outcome.refused), (1, 1));
        let large = "x".repeat(ALERT_BYTES_MAX - 1000);
        let mut posted = Posted::default();
        let alerts = (0..400).map(|at| alert(&format!("a={at} b={large}"), None, None)).collect();
        let outcome = posted.put(alerts, TIMEOUT, NOW);
        assert!(outcome.refused > 0 && posted.bytes <= BYTES_MAX, "{outcome:?}");
        let sum: usize = posted.all.iter().map(|(labels, own)| bytes(labels, own)).sum();
        assert_eq!(posted.bytes, sum);
        posted.changes(NOW.plus(TIMEOUT));
        posted.put(Vec::new(), TIMEOUT, NOW.plus(TIMEOUT));
        posted.changes(NOW.plus(TIMEOUT));
        assert_eq!(posted.firing(NOW.plus(TIMEOUT)).len(), 0);
    }
}
