//! The alerts of a rule at a time. Alerts beyond a limit have no record; one additional alert
//! represents them, so that a limit never means silence.
//!
//! Must never know: the states of alerts, receivers.

use std::collections::{BTreeMap, BTreeSet};

use super::{Evaluation, EvaluationQueries};
use crate::{
    alerts::{
        Alert, AlertPolicy, LEFT_OUT, LabelSet, NoData, Rule, TemplateData,
        machine::{FoundSeries, RESOLVED_KEPT_MS},
        rule::ALERT_NAME,
    },
    model::{METRIC_TAG, with_noun},
    query::{Labels, VectorSample},
};

/// The maximum number of alerts of one rule with a record.
pub(super) const ALERTS_MAX: usize = 10_000;
/// The maximum size of the annotations of these alerts, in bytes.
const ANNOTATION_BYTES_MAX: usize = 16 << 20;

/// The series of an expression, by the labels of their alerts.
type SeriesByLabels<'a> = BTreeMap<LabelSet, &'a VectorSample>;

impl Evaluation<'_> {
    /// Returns the alerts of a rule, given the previous ones, and the number of alerts beyond the
    /// limit.
    pub(super) fn find(
        &self,
        rule: &Rule,
        policy: &AlertPolicy,
        before: &[Alert],
    ) -> Result<(FoundSeries, usize), String> {
        let samples = self.vector(&rule.expression)?;
        let series_by_labels = self.series_by_labels(rule, &samples)?;
        let known: BTreeSet<_> =
            before.iter().filter(|alert| alert.is_active()).map(|alert| &alert.labels).collect();
        let (active, mut left_out) = self.select_recorded(policy, series_by_labels, &known);
        let mut found = FoundSeries { active, ..FoundSeries::default() };
        let labels_of = |expression: Option<&String>| -> Result<BTreeSet<LabelSet>, String> {
            let Some(expression) = expression else { return Ok(BTreeSet::new()) };
            let samples = self.vector(expression)?;
            let labels = |sample| alert_labels(rule, sample, &self.data(sample));
            Ok(samples.iter().map(labels).collect())
        };
        found.measured = labels_of(policy.measured.as_ref())?;
        found.recovered = labels_of(policy.recover.as_ref())?;
        if policy.no_data == NoData::Alerting {
            let labels = Labels::default();
            let (value, histogram) = (f64::NAN, None);
            let no_series = VectorSample { labels, at: self.at.0, value, histogram };
            found.rule_labels = alert_labels(rule, &no_series, &self.data(&no_series));
            left_out += limit_measured(&mut found, before);
        }
        represent_left_out(rule, &mut found, left_out, before);
        Ok((found, left_out))
    }

    fn series_by_labels<'a>(
        &self,
        rule: &Rule,
        samples: &'a [VectorSample],
    ) -> Result<SeriesByLabels<'a>, String> {
        let mut series_by_labels = SeriesByLabels::new();
        for sample in samples {
            let labels = alert_labels(rule, sample, &self.data(sample));
            if series_by_labels.insert(labels, sample).is_some() {
                return Err(
                    "two series have the same labels after those of the rule were added".to_owned()
                );
            }
        }
        Ok(series_by_labels)
    }

    /// Chooses the alerts that get a record: known ones first, then the others in the order of
    /// their labels. Returns these alerts, and the number of alerts without a record.
    fn select_recorded(
        &self,
        policy: &AlertPolicy,
        series_by_labels: SeriesByLabels<'_>,
        known: &BTreeSet<&LabelSet>,
    ) -> (BTreeMap<LabelSet, (f64, LabelSet)>, usize) {
        let continuing = series_by_labels.keys().filter(|labels| known.contains(labels)).count();
        let mut room = ALERTS_MAX.saturating_sub(continuing);
        let (mut bytes, mut left_out, mut active) = (0, 0, BTreeMap::new());
        for (labels, sample) in series_by_labels {
            let is_known = known.contains(&labels);
            let has_room = room > 0 && bytes <= ANNOTATION_BYTES_MAX;
            if !is_known && !has_room {
                left_out += 1;
                continue;
            }
            room -= usize::from(!is_known);
            let mut annotations = LabelSet::new();
            if bytes <= ANNOTATION_BYTES_MAX {
                let data = self.data(sample);
                let texts = policy.annotations.iter();
                annotations = texts.map(|(name, text)| (name.clone(), data.expand(text))).collect();
                bytes += annotations.values().map(String::len).sum::<usize>();
            }
            active.insert(labels, (sample.value, annotations));
        }
        (active, left_out)
    }

    fn data(&self, sample: &VectorSample) -> TemplateData {
        let EvaluationQueries { query, time, external, .. } = self.queries;
        TemplateData::new(&sample.labels, sample.value, query.clone(), time, external)
    }
}

/// Removes measured series beyond the limit, and returns their number. For a rule that alerts on
/// missing samples, each measured series needs a record.
fn limit_measured(found: &mut FoundSeries, before: &[Alert]) -> usize {
    let known: BTreeSet<_> = before.iter().map(|alert| &alert.labels).collect();
    let mut room = ALERTS_MAX.saturating_sub(known.len().max(found.active.len()));
    let count = found.measured.len();
    let active = &found.active;
    found.measured.retain(|labels| {
        let is_known = active.contains_key(labels) || known.contains(labels);
        let is_kept = is_known || room > 0;
        room -= usize::from(is_kept && !is_known);
        is_kept
    });
    count - found.measured.len()
}

/// Adds the alert that represents all alerts beyond the limit. This alert ends when no alert is
/// beyond the limit any more, even if the rule keeps other alerts firing.
fn represent_left_out(rule: &Rule, found: &mut FoundSeries, left_out: usize, before: &[Alert]) {
    let mut labels = rule.fixed_labels();
    labels.insert(LEFT_OUT.to_owned(), "true".to_owned());
    if left_out > 0 {
        let summary = format!(
            "{} of {}: the limit of a rule is {ALERTS_MAX}",
            with_noun(left_out, "more alert"),
            rule.name
        );
        let annotations = [("summary".to_owned(), summary)].into();
        found.active.insert(labels, (left_out as f64, annotations));
    } else if before.iter().any(|alert| alert.labels == labels) {
        found.measured.insert(labels.clone());
        found.recovered.insert(labels);
    }
}

/// Removes the oldest ended alerts when there are too many of them.
pub(super) fn without_old_ends(mut alerts: Vec<Alert>, at: i64) -> Vec<Alert> {
    let ends = |alerts: &[Alert]| -> Vec<i64> {
        alerts
            .iter()
            .filter(|alert| !alert.is_active())
            .filter_map(|alert| alert.resolved_at)
            .collect()
    };
    let mut ended = ends(&alerts);
    ended.sort_unstable();
    let too_many = ended.len().saturating_sub(ALERTS_MAX);
    let forgotten_until = too_many.checked_sub(1).and_then(|last| ended.get(last)).copied();
    alerts.retain(|alert| {
        let is_old = alert.resolved_at.is_some_and(|end| {
            forgotten_until.is_some_and(|forgotten_until| end <= forgotten_until)
        });
        let is_remembered = !alert.labels.contains_key(LEFT_OUT)
            || alert.resolved_at.is_some_and(|end| at - end <= RESOLVED_KEPT_MS);
        alert.is_active() || (!is_old && is_remembered)
    });
    alerts
}

fn alert_labels(rule: &Rule, sample: &VectorSample, data: &TemplateData) -> LabelSet {
    let labels = sample.labels.iter().filter(|(name, _)| *name != METRIC_TAG);
    let mut labels: LabelSet =
        labels.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    for (name, text) in &rule.labels {
        labels.insert(name.clone(), data.expand(text));
    }
    labels.insert(ALERT_NAME.to_owned(), rule.name.clone());
    labels.retain(|_, value| !value.is_empty());
    labels
}
