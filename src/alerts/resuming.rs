//! Alerts after a time without evaluations, and after the clock was set back.
//!
//! Time without evaluations does not count towards `for`. After a restart, Prometheus' rule with
//! its grace period applies (`rules/group.go`, `RestoreForState`). Must never know: the clock,
//! expressions.

use std::collections::BTreeMap;

use super::{Action, Alert, AlertState, DueEvaluation, GroupState, RuleGroup};

/// The grace period: after an outage, an alert with a shorter `for` is pending from the start
/// again, and no other alert fires before the period is over.
const GRACE_MS: i64 = 600_000;
/// The longest outage after which pending alerts continue; after a longer one, they start over.
const OUTAGE_MAX_MS: i64 = 3_600_000;
/// The longest restart, beyond the interval, that changes nothing.
const RESTART_MS: i64 = 5000;
/// The number of missed evaluations, and the time in milliseconds, up to which a running daemon
/// counts as late and not as down.
const LATE_EVALUATIONS: i64 = 4;
const LATE_MS: i64 = 30_000;

impl GroupState {
    /// Moves the times of the alerts after a long time without evaluations, or when the clock was
    /// set back. `is_first` is true at the first evaluation after the state was read.
    pub fn resume(&mut self, group: &RuleGroup, due: DueEvaluation, is_first: bool) {
        let Some(last) = self.last() else { return };
        let gap_ms = due.at.since(last);
        if gap_ms < 0 {
            // Otherwise ends would precede beginnings, and pending alerts would wait until the
            // clock has caught up.
            let ahead_ms = group.interval_ms - gap_ms;
            self.set_back += 1;
            self.last = last.0 - ahead_ms;
            self.alerts_mut().for_each(|alert| shift(alert, -ahead_ms));
            return;
        }
        let lost_ms = gap_ms - group.interval_ms;
        if is_first && lost_ms > RESTART_MS {
            self.restore(group, last.0, due.at.0);
        } else if lost_ms > LATE_MS.max(LATE_EVALUATIONS * group.interval_ms) {
            for alert in self.alerts_mut() {
                shift_waits(alert, lost_ms);
            }
        }
    }

    fn restore(&mut self, group: &RuleGroup, down_at: i64, at: i64) {
        let for_ms: BTreeMap<_, _> = group
            .rules
            .iter()
            .filter_map(|rule| match &rule.action {
                Action::Alert(policy) => Some((&rule.key, policy.for_ms)),
                Action::Record => None,
            })
            .collect();
        for (key, rule) in &mut self.rules {
            let Some(for_ms) = for_ms.get(key).copied() else { continue };
            for alert in &mut rule.alerts {
                let pending_since = alert.active_at;
                shift_waits(alert, at - down_at);
                if alert.state != AlertState::Pending {
                    continue;
                }
                let remaining_ms = for_ms - (down_at - pending_since);
                alert.active_at = if for_ms < GRACE_MS || at - down_at > OUTAGE_MAX_MS {
                    at
                } else if remaining_ms < GRACE_MS {
                    at + GRACE_MS - for_ms
                } else {
                    alert.active_at
                };
            }
        }
    }

    fn alerts_mut(&mut self) -> impl Iterator<Item = &mut Alert> {
        self.rules.values_mut().flat_map(|rule| &mut rule.alerts)
    }
}

/// Moves the times at which the waiting periods of an alert began.
fn shift_waits(alert: &mut Alert, by_ms: i64) {
    if alert.state == AlertState::Pending {
        alert.active_at += by_ms;
    }
    for since in [&mut alert.keep_firing_since, &mut alert.missing_since].into_iter().flatten() {
        *since += by_ms;
    }
}

fn shift(alert: &mut Alert, by_ms: i64) {
    alert.active_at += by_ms;
    let Alert { fired_at, resolved_at, keep_firing_since, missing_since, .. } = alert;
    for time in [fired_at, resolved_at, keep_firing_since, missing_since].into_iter().flatten() {
        *time += by_ms;
    }
    if let Some(acknowledged) = &mut alert.acknowledged {
        acknowledged.at += by_ms;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        alerts::{
            AlertPolicy, EvaluationQueries, LabelSet, Rule, RuleState, TemplateTime, WrittenSeries,
            evaluate,
        },
        model::UnixMillis,
        query::{Labels, VectorSample},
    };

    const START: i64 = 1_763_683_200_000;

    fn group(interval_ms: i64, for_ms: i64) -> RuleGroup {
        let policy = AlertPolicy { for_ms, ..AlertPolicy::default() };
        let rule = Rule {
            key: "A".into(),
            name: "A".into(),
            expression: "x".into(),
            labels: BTreeMap::new(),
            action: Action::Alert(policy),
        };
        let (file, name) = ("rules.yml".into(), "group".into());
        RuleGroup { file, name, interval_ms, query_offset_ms: 0, limit: 0, rules: vec![rule] }
    }

    /// Evaluations of one series that is always in the result.
    struct Bench {
        group: RuleGroup,
        state: GroupState,
        written: Vec<WrittenSeries>,
        is_first: bool,
    }

    impl Bench {
        fn new(interval_ms: i64, for_ms: i64) -> Self {
            let group = group(interval_ms, for_ms);
            let (state, written) = (GroupState::new(&group), vec![WrittenSeries::default()]);
            Self { group, state, written, is_first: true }
        }

        fn run(&mut self, at: i64) -> &Alert {
            let (at, missed) = (UnixMillis(at), 0);
            self.state.resume(&self.group, DueEvaluation { at, missed }, self.is_first);
            self.is_first = false;
            let labels = Labels::default;
            let vector = |_: &str, at: UnixMillis| {
                let (value, histogram) = (1.0, None);
                Ok(vec![VectorSample { labels: labels(), at: at.0, value, histogram }])
            };
            let queries = EvaluationQueries {
                vector: &vector,
                query: None,
                time: TemplateTime::default(),
                external: crate::alerts::ExternalIdentity::none(),
            };
            evaluate(&self.group, 0..1, &mut self.state, &mut self.written, at, &queries);
            self.state.last = at.0;
            &self.state.rules["A"].alerts[0]
        }

        /// Returns the time at which the alert fires when it is evaluated at each interval from a
        /// time on.
        fn fires_at(&mut self, from: i64) -> i64 {
            let mut at = from;
            while self.run(at).state != AlertState::Firing {
                at += self.group.interval_ms;
            }
            at
        }
    }

    /// A former fault: an alert with `for: 40s` was pending when the daemon was killed, and fired
    /// one second after the daemon was started again 48 s later.
    #[test]
    fn time_in_which_the_daemon_was_down_does_not_count_towards_for() {
        let check = |for_s: i64, pending_s: i64, down_s: i64, expected_s: i64| {
            let mut bench = Bench::new(5000, for_s * 1000);
            let mut at = START;
            while at <= START + pending_s * 1000 {
                assert_eq!(bench.run(at).state, AlertState::Pending);
                at += 5000;
            }
            let back_at = at - 5000 + down_s * 1000;
            bench.is_first = true;
            let fires_s = (bench.fires_at(back_at) - back_at) / 1000;
            assert_eq!(fires_s, expected_s, "for {for_s}, {pending_s} pending, {down_s} down");
        };
        // A `for` shorter than the grace period starts over.
        check(40, 20, 50, 40);
        check(300, 290, 300, 300);
        // The grace period is the minimum, as in Prometheus.
        check(900, 600, 300, 600);
        check(900, 880, 300, 600);
        // The rest of `for` remains.
        check(1800, 600, 300, 1200);
        // After an outage beyond the maximum, `for` starts over.
        check(1800, 600, 3700, 1800);
        // A restart between two evaluations, or nearly so, changes nothing.
        check(40, 20, 5, 15);
        check(40, 20, 10, 10);
    }

    #[test]
    fn a_stalled_daemon_counts_only_evaluated_time_and_a_slow_daemon_counts_all() {
        let check = |gap_s: i64, expected_s: i64| {
            let mut bench = Bench::new(5000, 60_000);
            for at in 0..=6 {
                bench.run(START + at * 5000);
            }
            let back_at = START + 30_000 + gap_s * 1000;
            assert_eq!(
                (bench.fires_at(back_at) - START) / 1000 - 30 - gap_s,
                expected_s,
                "{gap_s}"
            );
        };
        // The result is the same as after a restart of 5 s.
        check(120, 25);
        check(48 - 3, 25);
        check(20, 10);
    }

    proptest! {
        /// Whatever the clock does, no alert fires before it was evaluated for long enough, no end
        /// precedes its beginning, and pending alerts fire in time.
        #[test]
        fn a_clock_that_is_set_back_moves_all_times(
            steps in prop::collection::vec((1_i64..200, prop::bool::weighted(0.2)), 1..60),
            for_steps in 0_i64..20,
        ) {
            let interval_ms = 5000;
            let mut bench = Bench::new(interval_ms, for_steps * interval_ms);
            let (mut at, mut evaluations) = (START, 0);
            for (step, is_back) in steps {
                // Only a step of more than an interval is a step back.
                at += if is_back { -(step + 1) * interval_ms } else { interval_ms };
                let alert = bench.run(at).clone();
                prop_assert!(alert.active_at <= at && alert.fired_at.is_none_or(|fired_at| fired_at <= at));
                let fires = alert.state == AlertState::Firing;
                prop_assert_eq!(fires, evaluations >= for_steps, "after {}", evaluations);
                evaluations += 1;
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn a_state_that_is_stored_in_pieces_is_read_unchanged(
            count in 0_usize..1200, text in 1_usize..2000, last in any::<i64>()
        ) {
            let alert = |at: usize| Alert {
                annotations: [("summary".to_owned(), "x".repeat(text))].into(),
                value: at as f64,
                ..Alert::inactive(LabelSet::from([("host".to_owned(), format!("{at:05}"))]))
            };
            let rules = ["a", "b"].map(|key| {
                let alerts = (0..count).map(alert).collect();
                (key.to_owned(), RuleState { alerts, version: 7, since: 9 })
            });
            let state = GroupState { last, set_back: 3, rules: rules.into(), ..GroupState::default() };
            let pieces = state.to_pieces();
            prop_assert!(pieces.iter().all(|piece| piece.len() < 1 << 20));
            let mut read = GroupState::from_bytes(&pieces[0]).unwrap();
            prop_assert_eq!(read.pieces, pieces.len() - 1);
            for piece in &pieces[1..] {
                read.add_piece(piece).unwrap();
            }
            let alerts = |state: &GroupState| -> Vec<(usize, Option<f64>)> {
                let rules = state.rules.values();
                rules.map(|rule| (rule.alerts.len(), rule.alerts.last().map(|alert| alert.value))).collect()
            };
            prop_assert_eq!(alerts(&read), alerts(&state));
            prop_assert_eq!((read.last, read.set_back), (last, 3));
            // The number of pieces is stable, so that most pieces stay the same.
            prop_assert_eq!(read.to_pieces().len(), pieces.len());
        }
    }
}
