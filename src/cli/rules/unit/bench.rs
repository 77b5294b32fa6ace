//! A store of its own for one test: its series come in as time goes on, and its rules are evaluated
//! as the daemon does it.
//!
//! Must never know: what is expected.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use anyhow::{Context, bail};

use crate::{
    alerts::{
        Alert, AlertState, Answered, Ask, External, GroupState, RuleGroup, TemplateTime, Written,
        evaluate, stages,
    },
    model::{
        AcceptedBatch, DefinitionVerdict, Granularity, GranularitySet, Kind, METRIC_TAG,
        STALE_MARKER, SeriesId, SeriesInfo, SeriesKey, SeriesLimits, Span, UnixMillis,
    },
    query::{Budget, Labels, PromqlSettings, evaluate_vector},
    store::{Appender, Folder, Store},
};

/// The store, with rules under way.
pub(super) struct Bench {
    store: Store,
    appender: Appender,
    promql: PromqlSettings,
    external: External,
    groups: Vec<Running>,
    known: BTreeMap<Labels, SeriesId>,
    /// Where the store lies; removed with it.
    _folder: tempfile::TempDir,
}

struct Running {
    group: RuleGroup,
    stages: Vec<Range<usize>>,
    state: GroupState,
    written: Vec<Written>,
}

impl Bench {
    /// An empty store, in which samples a second apart stay apart.
    pub(super) fn new(
        groups: Vec<RuleGroup>,
        promql: PromqlSettings,
        external: External,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("make a folder for the test")?;
        let medium = Arc::new(Folder::new(folder.path()).context("make a store for the test")?);
        let [minute, hour, years] = [60_000, 3_600_000, 100 * 365 * 86_400_000].map(Span::Fixed);
        let seconds = Granularity::new(1000, minute, hour, years);
        let set = GranularitySet::new(vec![seconds]).map_err(|cause| anyhow::anyhow!("{cause}"))?;
        let (store, appender, _) = Store::open(medium, set, UnixMillis(0))?;
        let running = |group: RuleGroup| Running {
            state: GroupState::new(&group),
            written: vec![Written::default(); group.rules.len()],
            stages: stages(&group),
            group,
        };
        let groups = groups.into_iter().map(running).collect();
        let known = BTreeMap::new();
        Ok(Self { store, appender, promql, external, groups, known, _folder: folder })
    }

    /// Takes in samples of a time.
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
        // As Prometheus, whose series have no kind.
        let info = SeriesInfo { key, kind: Kind::Gauge, unit, sender };
        let defined = self.appender.commit(&[info], &[], UnixMillis(0))?.definitions;
        let [DefinitionVerdict::Known(id)] = defined[..] else {
            bail!("there are too many series")
        };
        self.known.insert(labels.clone(), id);
        Ok(id)
    }

    /// The value of an expression at a time.
    pub(super) fn ask(&self, expression: &str, at: UnixMillis) -> Answered {
        ask(&self.store, &self.promql, expression, at)
    }

    /// Evaluates all rules at a time, in order; a rule that fails fails the test.
    pub(super) fn evaluate(&mut self, at: UnixMillis) -> anyhow::Result<()> {
        for index in 0..self.groups.len() {
            for rules in self.groups[index].stages.clone() {
                let (store, promql) = (self.store.clone(), self.promql);
                let vector = |text: &str, at: UnixMillis| ask(&store, &promql, text, at);
                let (store, promql) = (self.store.clone(), self.promql);
                let query = Arc::new(move |text: &str| ask(&store, &promql, text, at));
                let (time, external) = (TemplateTime::default(), &self.external);
                let asked = Ask { vector: &vector, query: Some(query), time, external };
                let own = &mut self.groups[index];
                let first = rules.start;
                let run = evaluate(&own.group, rules, &mut own.state, &mut own.written, at, &asked);
                let failed = run.reports.iter().position(|report| report.error.is_some());
                if let Some(place) = failed {
                    let rule = &own.group.rules[first + place];
                    let error = run.reports[place].error.clone().unwrap_or_default();
                    bail!("group {:?}, rule {:?}, at {at}: {error}", own.group.name, rule.name);
                }
                let ended = run.ended.into_iter().map(|labels| (labels, STALE_MARKER));
                let samples: Vec<_> = run.samples.into_iter().chain(ended).collect();
                let offset_ms = self.groups[index].group.query_offset_ms;
                self.add(&samples, at.plus(-offset_ms))?;
            }
        }
        Ok(())
    }

    /// The alerts of a name that are told to people.
    pub(super) fn told(&self, name: &str) -> Vec<&Alert> {
        let mut told = Vec::new();
        for own in &self.groups {
            for rule in own.group.rules.iter().filter(|rule| rule.name == name) {
                let alerts = own.state.rules.get(&rule.key).into_iter();
                let alerts = alerts.flat_map(|state| &state.alerts);
                told.extend(alerts.filter(|alert| AlertState::is_told(alert.state)));
            }
        }
        told
    }
}

fn ask(store: &Store, promql: &PromqlSettings, text: &str, at: UnixMillis) -> Answered {
    evaluate_vector(store, &Budget::UNLIMITED, promql, text, at, at.into())
}
