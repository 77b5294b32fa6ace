//! Tests of reviews against a naive model, which evaluates everything again with all samples.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::{
    alerts::{DueEvaluation, ExternalIdentity, TemplateTime, WrittenSeries, evaluate},
    query::{Labels, VectorSample},
};

const MINUTE: i64 = 60_000;
const LOOKBACK: i64 = 2;
/// The minute before which all samples are measured.
const MEASURED: i64 = 14;
/// The minute of the last evaluation.
const END: i64 = 40;
const TERMS: ReviewTerms =
    ReviewTerms { slot_ms: MINUTE, lookback_ms: LOOKBACK * MINUTE, known_since: 0 };

/// A sample: its minute, its value, and the minute in which it arrives.
type Sample = (i64, f64, i64);

/// Returns the latest value at a minute, among the samples that have arrived by the minute `now`.
fn value(samples: &[Sample], at: i64, now: i64) -> Option<f64> {
    let is_seen = |sample: &&Sample| sample.0 <= at && sample.0 > at - LOOKBACK && sample.2 <= now;
    samples.iter().filter(is_seen).max_by_key(|sample| sample.0).map(|sample| sample.1)
}

/// Returns the result of the expression `x` or `x > N`, given the value of `x`.
fn answer(expression: &str, value: Option<f64>, at: i64) -> Vec<VectorSample> {
    let above = expression.strip_prefix("x > ").map(|text| text.parse::<f64>().unwrap());
    let value = value.filter(|value| above.is_none_or(|above| *value > above));
    let labels = Labels::default;
    let sample = |value| VectorSample { labels: labels(), at, value, histogram: None };
    value.map(sample).into_iter().collect()
}

fn group(policy: &AlertPolicy, above: i64) -> RuleGroup {
    let rule = Rule {
        key: "High".into(),
        name: "High".into(),
        expression: format!("x > {above}"),
        labels: BTreeMap::new(),
        action: Action::Alert(policy.clone()),
    };
    let (file, name) = ("rules.yml".into(), "group".into());
    let rules = vec![rule];
    RuleGroup { file, name, interval_ms: MINUTE, query_offset_ms: 0, limit: 0, rules }
}

/// The value that an evaluation found, and the rule's threshold.
#[derive(Debug, Clone, Copy)]
struct LoggedEvaluation {
    above: i64,
    value: Option<f64>,
}

impl LoggedEvaluation {
    fn is_active(self) -> bool {
        self.value.is_some_and(|value| value > self.above as f64)
    }
}

/// The outcome of all evaluations, and the log of each.
struct EvaluationLog {
    group: RuleGroup,
    state: GroupState,
    history: GroupHistory,
    log: BTreeMap<i64, LoggedEvaluation>,
}

/// Evaluates each minute except missed ones. The rule changes at the minute `changed`. State and
/// history are read again after each evaluation, as after a restart.
fn run(
    policy: &AlertPolicy,
    samples: &[Sample],
    missed: &BTreeSet<i64>,
    changed: i64,
) -> EvaluationLog {
    let group_at = |minute: i64| group(policy, if minute < changed { 5 } else { 6 });
    let mut state = GroupState::new(&group_at(0));
    let (mut history, mut log) = (GroupHistory::default(), BTreeMap::new());
    let mut written = vec![WrittenSeries::default()];
    let mut skipped = 0;
    for minute in 1..=END {
        if missed.contains(&minute) {
            skipped += 1;
            continue;
        }
        let group = group_at(minute);
        let seen = value(samples, minute, minute);
        log.insert(
            minute,
            LoggedEvaluation { above: if minute < changed { 5 } else { 6 }, value: seen },
        );
        let vector = |expression: &str, at: UnixMillis| Ok(answer(expression, seen, at.0));
        let queries = EvaluationQueries {
            vector: &vector,
            query: None,
            time: TemplateTime::default(),
            external: ExternalIdentity::none(),
        };
        let at = UnixMillis(minute * MINUTE);
        let before = state.clone();
        state.adapt_to(&group, DueEvaluation { at, missed: skipped });
        evaluate(&group, 0..1, &mut state, &mut written, at, &queries);
        state.last = at.0;
        let ended = history.newly_ended(&before, &state);
        history.add(ended, at.0);
        state = GroupState::from_bytes(&state.to_pieces()[0]).unwrap();
        history.drop_oldest_to_fit();
        history = serde_json::from_slice(&serde_json::to_vec(&history).unwrap()).unwrap();
        skipped = 0;
    }
    EvaluationLog { group: group_at(END), state, history, log }
}

/// Reviews each episode, with all samples.
fn review_all(run: &mut EvaluationLog, samples: &[Sample]) {
    let vector = |expression: &str, at: UnixMillis| {
        Ok(answer(expression, value(samples, at.0 / MINUTE, i64::MAX), at.0))
    };
    let queries = EvaluationQueries {
        vector: &vector,
        query: None,
        time: TemplateTime::default(),
        external: ExternalIdentity::none(),
    };
    for index in 0..run.history.episodes().len() {
        let known = (&run.state, &run.history);
        let review = next_to_review(&run.group, known, TERMS, index);
        let Some(review) = review.filter(|review| review.index == index) else { continue };
        if let Some(revision) = review.make(&queries).unwrap() {
            run.history.revise(index, revision);
        }
    }
}

/// Returns whether late samples change the result of the evaluation of a minute.
fn is_changed(run: &EvaluationLog, samples: &[Sample], minute: i64) -> bool {
    let logged = run.log[&minute];
    let repeated = LoggedEvaluation { value: value(samples, minute, i64::MAX), ..logged };
    logged.is_active() != repeated.is_active() || logged.value.is_some() != repeated.value.is_some()
}

fn policies() -> impl Strategy<Value = AlertPolicy> {
    let no_data =
        prop_oneof![3 => Just(NoData::Ok), 1 => Just(NoData::Keep), 1 => Just(NoData::Alerting)];
    (0..3_i64, prop_oneof![2 => Just(0), 1 => 1..3_i64], no_data).prop_map(
        |(pending, keeping, no_data)| AlertPolicy {
            for_ms: pending * MINUTE,
            keep_firing_ms: keeping * MINUTE,
            no_data,
            measured: (no_data != NoData::Ok).then(|| "x".to_owned()),
            ..AlertPolicy::default()
        },
    )
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let delay = prop_oneof![4 => Just(0), 1 => 1..12_i64];
    let value = prop_oneof![3 => Just(9.0), 1 => Just(6.0), 2 => Just(1.0)];
    let reading = prop::option::weighted(0.8, (value, delay));
    prop::collection::vec(reading, MEASURED as usize).prop_map(|readings| {
        let sample = |(at, reading): (i64, Option<(f64, i64)>)| {
            reading.map(|(value, delay)| (at, value, at + delay))
        };
        (1..).zip(readings).filter_map(sample).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    /// The histories have values, gaps, late samples, missed evaluations, changed rules and
    /// restarts.
    #[test]
    fn an_episode_is_revised_exactly_when_late_samples_change_an_evaluation(
        policy in policies(),
        samples in samples(),
        missed in prop_oneof![2 => Just(BTreeSet::new()), 1 => prop::collection::btree_set(1..END, 1..3)],
        changed in prop_oneof![2 => Just(0), 1 => 1..END],
    ) {
        let mut run = run(&policy, &samples, &missed, changed);
        review_all(&mut run, &samples);
        let minutes = |at: i64| at / MINUTE;
        let is_plain = policy.no_data == NoData::Ok && policy.keep_firing_ms == 0;
        for episode in run.history.episodes() {
            let begin = minutes(episode.active_at.unwrap());
            let end = minutes(episode.resolved_at.unwrap());
            if let Some(revision) = episode.revised {
                let at = minutes(revision.at);
                prop_assert!(run.log.contains_key(&at), "{:?} was never evaluated", episode);
                // A pending alert was active, but not for all of `for`.
                let since = if revision.active { at - minutes(policy.for_ms) } else { at };
                let differs = (since..=at).any(|at| is_changed(&run, &samples, at));
                prop_assert!(differs, "{:?} {:?}", episode, run.log);
            }
            let is_complete = (begin..=end + LOOKBACK + 2).all(|at| run.log.contains_key(&at));
            let is_short = end - begin <= EVALUATIONS_MAX as i64;
            let is_unchanged_rule = is_complete && is_short && run.log[&begin].above == run.log[&END].above;
            if is_plain && is_unchanged_rule && missed.iter().all(|at| *at < begin) {
                let differs = (begin..end - 1).any(|at| is_changed(&run, &samples, at));
                let is_active = episode.revised.is_some_and(|revision| revision.active);
                prop_assert_eq!(differs, episode.revised.is_some() && !is_active, "{:?}", episode);
            }
        }
    }
}

fn revisions_of(
    policy: &AlertPolicy,
    samples: &[Sample],
) -> Vec<(AlertState, Option<(i64, bool)>)> {
    let mut run = run(policy, samples, &BTreeSet::new(), 0);
    review_all(&mut run, samples);
    let revision_of = |episode: &Episode| {
        (episode.state, episode.revised.map(|revision| (revision.at / MINUTE, revision.active)))
    };
    run.history.episodes().iter().map(revision_of).collect()
}

#[test]
fn late_samples_revise_alerts_that_fired_ended_or_reported_missing_samples() {
    let plain = AlertPolicy::default();
    let high = |at: i64| (at, 9.0, at);
    let on_time: Vec<_> = (1..8).map(high).chain([(8, 1.0, 8)]).collect();
    assert_eq!(revisions_of(&plain, &on_time), [(AlertState::Firing, None)]);
    // A late sample shows that the series had recovered.
    let mut recovered = on_time.clone();
    recovered[3] = (4, 1.0, 12);
    assert_eq!(revisions_of(&plain, &recovered), [(AlertState::Firing, Some((4, false)))]);
    // Late samples show that the alert would have continued.
    let mut missing: Vec<_> = (1..5).map(high).collect();
    missing.extend((5..20).map(|at| (at, 9.0, 25)));
    assert_eq!(revisions_of(&plain, &missing), [(AlertState::Firing, Some((8, true)))]);
    let watched = AlertPolicy {
        no_data: NoData::Alerting,
        measured: Some("x".to_owned()),
        ..AlertPolicy::default()
    };
    let mut late: Vec<_> = (1..5).map(|at| (at, 1.0, at)).collect();
    late.extend((5..20).map(|at| (at, 1.0, 15)));
    late.extend((20..40).map(|at| (at, 1.0, at)));
    assert_eq!(revisions_of(&watched, &late), [(AlertState::NoData, Some((8, false)))]);
}
