//! The temporary store of a test: samples are added as time advances, and rules are evaluated as in
//! the daemon.
//!
//! Must never know: the expected results.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use anyhow::{Context, bail};

use crate::{
    alerts::{
        Alert, AlertState, EvaluationQueries, ExpressionResult, ExternalIdentity, GroupState,
        RuleGroup, TemplateTime, WrittenSeries, evaluate, stages,
    },
    model::{
        AcceptedBatch, DefinitionVerdict, Granularity, GranularitySet, Kind, METRIC_TAG,
        STALE_MARKER, SeriesId, SeriesInfo, SeriesKey, SeriesLimits, Span, UnixMillis,
    },
    query::{Budget, Labels, PromqlSettings, evaluate_vector},
    store::{Appender, Folder, Store},
};

/// The store, and the rules with their states.
pub(super) struct Bench {
    store: Store,
    appender: Appender,
    promql: PromqlSettings,
    external: ExternalIdentity,
    groups: Vec<RunningGroup>,
    known: BTreeMap<Labels, SeriesId>,
    /// The folder of the store, which is removed when the test ends.
    _folder: tempfile::TempDir,
}

struct RunningGroup {
    group: RuleGroup,
    stages: Vec<Range<usize>>,
    state: GroupState,
    written: Vec<WrittenSeries>,
}

impl Bench {
    /// Creates an empty store with slots of one second.
    pub(super) fn new(
        groups: Vec<RuleGroup>,
        promql: PromqlSettings,
        external: ExternalIdentity,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("make a folder for the test")?;
        let medium = Arc::new(Folder::new(folder.path()).context("make a store for the test")?);
        let [minute, hour, years] = [60_000, 3_600_000, 100 * 365 * 86_400_000].map(Span::Fixed);
        let seconds = Granularity::new(1000, minute, hour, years);
        let set = GranularitySet::new(vec![seconds]).map_err(|cause| anyhow::anyhow!("{cause}"))?;
        let (store, appender, _) = Store::open(medium, set, UnixMillis(0))?;
        let running = |group: RuleGroup| RunningGroup {
            state: GroupState::new(&group),
            written: vec![WrittenSeries::default(); group.rules.len()],
            stages: stages(&group),
            group,
        };
        let groups = groups.into_iter().map(running).collect();
        let known = BTreeMap::new();
        Ok(Self { store, appender, promql, external, groups, known, _folder: folder })
    }

    /// Appends the samples of one time.
    pub(super) fn add(&mut self, samples: &[(Labels, f64)], at: UnixMillis) -> anyhow::Result<()> {
        let mut batch = AcceptedBatch { times: vec![at.0], ..AcceptedBatch::default() };
        for (labels, value) in samples {
            batch.series.push(self.series(labels)?);
            batch.values.push(*value);
        }
        if !batch.values.is_empty() {
            self.appender.commit(&[], &[batch], at)?;
        }
        Ok(())
    }

    fn series(&mut self, labels: &Labels) -> anyhow::Result<SeriesId> {
        if let Some(id) = self.known.get(labels) {
            return Ok(*id);
        }
        let tags = labels.iter().filter(|(name, _)| *name != METRIC_TAG);
        let key = SeriesKey::new(labels.metric(), tags, &SeriesLimits::default())?;
        let (unit, sender) = ("".into(), "".into());
        // Samples of Prometheus' tests have no kind, so every series is a gauge.
        let info = SeriesInfo { key, kind: Kind::Gauge, unit, sender };
        let defined = self.appender.commit(&[info], &[], UnixMillis(0))?.definitions;
        let [DefinitionVerdict::Known(id)] = defined[..] else {
            bail!("there are too many series")
        };
        self.known.insert(labels.clone(), id);
        Ok(id)
    }

    /// Returns the value of an expression at a time.
    pub(super) fn query_vector(&self, expression: &str, at: UnixMillis) -> ExpressionResult {
        query_vector(&self.store, &self.promql, expression, at)
    }

    /// Evaluates all rules at a time, in order. An error of a rule fails the test.
    pub(super) fn evaluate(&mut self, at: UnixMillis) -> anyhow::Result<()> {
        for index in 0..self.groups.len() {
            for rules in self.groups[index].stages.clone() {
                let (store, promql) = (self.store.clone(), self.promql);
                let vector = |text: &str, at: UnixMillis| query_vector(&store, &promql, text, at);
                let (store, promql) = (self.store.clone(), self.promql);
                let query = Arc::new(move |text: &str| query_vector(&store, &promql, text, at));
                let (time, external) = (TemplateTime::default(), &self.external);
                let context =
                    EvaluationQueries { vector: &vector, query: Some(query), time, external };
                let running = &mut self.groups[index];
                let first = rules.start;
                let run = evaluate(
                    &running.group,
                    rules,
                    &mut running.state,
                    &mut running.written,
                    at,
                    &context,
                );
                let failed = run.reports.iter().position(|report| report.error.is_some());
                if let Some(position) = failed {
                    let rule = &running.group.rules[first + position];
                    let error = run.reports[position].error.clone().unwrap_or_default();
                    bail!("group {:?}, rule {:?}, at {at}: {error}", running.group.name, rule.name);
                }
                let ended = run.ended.into_iter().map(|labels| (labels, STALE_MARKER));
                let samples: Vec<_> = run.samples.into_iter().chain(ended).collect();
                let offset_ms = self.groups[index].group.query_offset_ms;
                self.add(&samples, at.plus(-offset_ms))?;
            }
        }
        Ok(())
    }

    /// Returns the firing alerts of a name.
    pub(super) fn firing(&self, name: &str) -> Vec<&Alert> {
        let mut firing = Vec::new();
        for running in &self.groups {
            for rule in running.group.rules.iter().filter(|rule| rule.name == name) {
                let alerts = running.state.rules.get(&rule.key).into_iter();
                let alerts = alerts.flat_map(|state| &state.alerts);
                firing.extend(alerts.filter(|alert| AlertState::is_notified(alert.state)));
            }
        }
        firing
    }
}

fn query_vector(
    store: &Store,
    promql: &PromqlSettings,
    text: &str,
    at: UnixMillis,
) -> ExpressionResult {
    evaluate_vector(store, &Budget::UNLIMITED, promql, text, at, at.into())
}
