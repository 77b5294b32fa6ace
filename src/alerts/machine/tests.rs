//! Tests of the machine against a naive model, which recomputes each state from all findings.

use proptest::prelude::*;

use super::*;
use crate::alerts::{GroupState, RuleState};

/// The finding about one alert at one evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finding {
    /// The series is in the result.
    Active,
    /// The series is measured, but neither in the result nor recovered.
    Between,
    /// The series is measured, and has recovered.
    Recovered,
    /// Nothing is measured.
    Nothing,
}

const NAME: &str = "alertname";

fn labels(name: &str) -> LabelSet {
    [(NAME.to_owned(), name.to_owned())].into()
}

fn found(seen: Finding) -> FoundSeries {
    let mut found = FoundSeries { rule_labels: labels("rule"), ..FoundSeries::default() };
    if seen == Finding::Active {
        found.active.insert(labels("a"), (1.0, LabelSet::new()));
    }
    if seen != Finding::Nothing {
        found.measured.insert(labels("a"));
    }
    if seen == Finding::Recovered {
        found.recovered.insert(labels("a"));
    }
    found
}

fn state_of(alerts: &[Alert], name: &str) -> AlertState {
    let found = alerts.iter().find(|alert| alert.labels == labels(name));
    found.map_or(AlertState::Inactive, |alert| alert.state)
}

/// Returns the index at which the latest run of findings that meet a condition begins.
fn run_start(history: &[(i64, Finding)], meets: impl Fn(Finding) -> bool) -> Option<usize> {
    let run = history.iter().rev().take_while(|(_, seen)| meets(*seen)).count();
    (run > 0).then(|| history.len() - run)
}

/// The times of a rule at an evaluation: `for` and `keep_firing_for`.
type Times = (i64, i64);

fn with_times(policy: &AlertPolicy, (for_ms, keep_firing_ms): Times) -> AlertPolicy {
    AlertPolicy { for_ms, keep_firing_ms, ..policy.clone() }
}

/// Returns the state of the alert after all findings, computed from the whole history; the rule's
/// times may differ at each evaluation.
fn naive(rule: &AlertPolicy, times: &[Times], history: &[(i64, Finding)]) -> AlertState {
    let Some((&(now, seen), before)) = history.split_last() else { return AlertState::Inactive };
    let policy = &with_times(rule, times[before.len()]);
    let previous = naive(rule, times, before);
    match seen {
        Finding::Active => {
            // The alert is pending from the time at which its series appears in the result.
            // Missing samples do not interrupt this, unless they count as an end.
            if previous == AlertState::Firing {
                return AlertState::Firing;
            }
            let continues = |seen: Finding| {
                seen == Finding::Active
                    || (seen == Finding::Nothing && policy.no_data != NoData::Ok)
            };
            let mut since = run_start(history, continues).unwrap_or(0);
            // The alert is pending since the first series after the last evaluation at which
            // missing samples were reported, or ended the alert.
            let mut at = since;
            while at < before.len() {
                let state = naive(rule, times, &history[..=at]);
                if matches!(state, AlertState::NoData | AlertState::Inactive) {
                    since = at + 1;
                }
                at += 1;
            }
            while history[since].1 != Finding::Active {
                since += 1;
            }
            if now - history[since].0 >= policy.for_ms {
                AlertState::Firing
            } else {
                AlertState::Pending
            }
        }
        Finding::Nothing if policy.no_data != NoData::Ok => {
            let since = run_start(history, |seen| seen == Finding::Nothing).unwrap_or(0);
            let missing_ms = now - history[since].0;
            match policy.no_data {
                NoData::Keep if policy.no_data_for_ms.is_some_and(|limit| missing_ms >= limit) => {
                    AlertState::Inactive
                }
                NoData::Alerting
                    if previous != AlertState::Firing
                        && since > 0
                        && missing_ms >= policy.no_data_for_ms.unwrap_or(0) =>
                {
                    AlertState::NoData
                }
                NoData::Ok | NoData::Keep | NoData::Alerting => previous,
            }
        }
        Finding::Between | Finding::Recovered | Finding::Nothing => {
            if previous != AlertState::Firing {
                return AlertState::Inactive;
            }
            if seen == Finding::Between && policy.recover.is_some() {
                return AlertState::Firing;
            }
            let holds = |seen: Finding| seen == Finding::Between && policy.recover.is_some();
            let is_passing = |seen: Finding| {
                let is_missing = seen == Finding::Nothing && policy.no_data != NoData::Ok;
                seen != Finding::Active && !is_missing && !holds(seen)
            };
            // `keep_firing_for` begins with the first evaluation, after the last one with the
            // series, that would have ended the alert.
            let since_active = run_start(history, |seen| seen != Finding::Active).unwrap_or(0);
            let first = history[since_active..].iter().find(|(_, seen)| is_passing(*seen));
            let since = first.map_or(now, |(at, _)| *at);
            if now - since < policy.keep_firing_ms {
                AlertState::Firing
            } else {
                AlertState::Inactive
            }
        }
    }
}

fn policies() -> impl Strategy<Value = AlertPolicy> {
    let no_data = prop_oneof![Just(NoData::Ok), Just(NoData::Keep), Just(NoData::Alerting)];
    let minutes = |most: i64| (0..=most).prop_map(|count| count * 60_000);
    (minutes(4), minutes(3), no_data, prop::option::of(minutes(3)), any::<bool>()).prop_map(
        |(for_ms, keep_firing_ms, no_data, no_data_for_ms, recovers)| AlertPolicy {
            for_ms,
            keep_firing_ms,
            no_data,
            no_data_for_ms,
            recover: recovers.then(String::new),
            measured: Some(String::new()),
            ..AlertPolicy::default()
        },
    )
}

proptest! {
    /// The histories are any sequences of values, gaps, missed evaluations, restarts and changes of
    /// the rule's times.
    #[test]
    fn states_equal_those_of_a_naive_model(
        policy in policies(),
        steps in prop::collection::vec(
            (
                prop_oneof![
                    4 => Just(Finding::Active),
                    1 => Just(Finding::Between),
                    2 => Just(Finding::Recovered),
                    2 => Just(Finding::Nothing),
                ],
                1..4_i64,
                any::<bool>(),
                prop::option::weighted(0.2, (0..=4_i64, 0..=3_i64)),
            ),
            1..11,
        ),
    ) {
        let (mut alerts, mut history, mut at) = (Vec::new(), Vec::new(), 0);
        let (mut times, mut now) = (Vec::new(), (policy.for_ms, policy.keep_firing_ms));
        for (seen, minutes, is_restarted, changed) in steps {
            at += minutes * 60_000;
            history.push((at, seen));
            now = changed.map_or(now, |(pending, keeping)| (pending * 60_000, keeping * 60_000));
            times.push(now);
            alerts = advance(&with_times(&policy, now), alerts, found(seen), at);
            if is_restarted {
                let mut state = GroupState::default();
                state.rules.insert("A".to_owned(), RuleState { alerts: alerts.clone(), ..RuleState::default() });
                let read = GroupState::from_bytes(&state.to_pieces()[0]).unwrap();
                // NaN is not equal to itself.
                prop_assert_eq!(format!("{:?}", &read.rules["A"].alerts), format!("{alerts:?}"));
                alerts.clone_from(&read.rules["A"].alerts);
            }
            prop_assert_eq!(state_of(&alerts, "a"), naive(&policy, &times, &history), "{:?}", history);
        }
    }
}

fn run(policy: &AlertPolicy, steps: &[(i64, Finding)]) -> Vec<Alert> {
    let step = |alerts, (at, seen): &(i64, Finding)| advance(policy, alerts, found(*seen), *at);
    steps.iter().fold(Vec::new(), step)
}

#[test]
fn an_alert_records_when_it_began_fired_and_ended() {
    let policy = AlertPolicy { for_ms: 20, ..AlertPolicy::default() };
    let alerts =
        run(&policy, &[(10, Finding::Active), (20, Finding::Active), (30, Finding::Active)]);
    assert_eq!((alerts[0].active_at, alerts[0].fired_at), (10, Some(30)));
    let ended = advance(&policy, alerts, found(Finding::Recovered), 40);
    assert_eq!((ended[0].state, ended[0].resolved_at), (AlertState::Inactive, Some(40)));
    let much_later = 41 + RESOLVED_KEPT_MS;
    assert_eq!(advance(&policy, ended.clone(), found(Finding::Recovered), much_later), []);
    let fired_again = advance(&policy, ended, found(Finding::Active), 50);
    assert_eq!((fired_again[0].active_at, fired_again[0].resolved_at), (50, None));
}

#[test]
fn a_rule_that_measures_nothing_has_one_alert_which_ends_with_the_first_series() {
    let no_data = NoData::Alerting;
    let policy = AlertPolicy { no_data, no_data_for_ms: Some(10), ..AlertPolicy::default() };
    let alerts = run(&policy, &[(10, Finding::Nothing)]);
    assert_eq!(state_of(&alerts, "rule"), AlertState::Inactive);
    let alerts = advance(&policy, alerts, found(Finding::Nothing), 20);
    assert_eq!((alerts.len(), state_of(&alerts, "rule")), (1, AlertState::NoData));
    let alerts = advance(&policy, alerts, found(Finding::Recovered), 30);
    assert_eq!(state_of(&alerts, "rule"), AlertState::Inactive);
    let alerts = advance(&policy, alerts, found(Finding::Nothing), 40);
    let alerts = advance(&policy, alerts, found(Finding::Nothing), 50);
    assert_eq!(
        state_of(&alerts, "rule"),
        AlertState::Inactive,
        "the alert of the series reports it now"
    );
    assert_eq!(state_of(&alerts, "a"), AlertState::NoData);
}

#[test]
fn a_series_that_is_missing_for_a_day_is_no_longer_reported() {
    let policy = AlertPolicy { no_data: NoData::Alerting, ..AlertPolicy::default() };
    let mut two_series = found(Finding::Recovered);
    two_series.measured.insert(labels("b"));
    let alerts = advance(&policy, Vec::new(), two_series, 10);
    let alerts = advance(&policy, alerts, found(Finding::Recovered), 20);
    assert_eq!(state_of(&alerts, "b"), AlertState::NoData);
    let alerts = advance(&policy, alerts, found(Finding::Recovered), 20 + MISSED_KEPT_MS);
    assert_eq!(state_of(&alerts, "b"), AlertState::NoData);
    let alerts = advance(&policy, alerts, found(Finding::Recovered), 21 + MISSED_KEPT_MS);
    assert_eq!(state_of(&alerts, "b"), AlertState::Inactive);
}
