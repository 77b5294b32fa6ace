//! Tests of evaluations of small groups; a table answers the queries.

use std::collections::BTreeMap;

use super::{finding::ALERTS_MAX, *};
use crate::alerts::{AlertState, LEFT_OUT, NoData};

const AT: UnixMillis = UnixMillis(1_763_683_200_000);

fn labels(text: &str) -> Labels {
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    let pairs = pairs.filter_map(|pair| pair.split_once('='));
    Labels::new(pairs.map(|(name, value)| (name.into(), value.into())).collect())
}

fn rule(name: &str, expression: &str, action: Action) -> Rule {
    let labels = BTreeMap::new();
    Rule { key: name.into(), name: name.into(), expression: expression.into(), labels, action }
}

fn group(rules: Vec<Rule>) -> RuleGroup {
    RuleGroup {
        file: "rules.yml".into(),
        name: "group".into(),
        interval_ms: 60_000,
        query_offset_ms: 0,
        limit: 0,
        rules,
    }
}

/// A group whose rules are all evaluated with the same answers.
struct EvaluatedGroup {
    group: RuleGroup,
    state: GroupState,
    written: Vec<WrittenSeries>,
}

impl EvaluatedGroup {
    fn new(group: RuleGroup) -> Self {
        let (state, written) =
            (GroupState::new(&group), vec![WrittenSeries::default(); group.rules.len()]);
        Self { group, state, written }
    }

    fn run(&mut self, minutes: i64, answers: &[(&str, &[(&str, f64)])]) -> GroupRun {
        let vector = |expression: &str, at: UnixMillis| {
            let found = answers.iter().find(|(known, _)| *known == expression);
            let (_, series) = found.ok_or_else(|| format!("{expression} failed"))?;
            let sample = |(text, value): &(&str, f64)| VectorSample {
                labels: labels(text),
                at: at.0,
                value: *value,
                histogram: None,
            };
            Ok(series.iter().map(sample).collect())
        };
        let queries = EvaluationQueries {
            vector: &vector,
            query: None,
            time: TemplateTime::default(),
            external: ExternalIdentity::none(),
        };
        let (at, all) = (AT.plus(minutes * 60_000), 0..self.group.rules.len());
        evaluate(&self.group, all, &mut self.state, &mut self.written, at, &queries)
    }
}

fn written(run: &GroupRun) -> Vec<String> {
    let samples = run.samples.iter().map(|(labels, value)| format!("{labels} {value}"));
    samples.chain(run.ended.iter().map(|labels| format!("{labels} ends"))).collect()
}

#[test]
fn recorded_series_have_the_rules_name_and_labels_and_end_with_their_source() {
    let mut recording = rule("job:up", "up", Action::Record);
    recording.labels = [("team".to_owned(), "x".to_owned())].into();
    let mut evaluated = EvaluatedGroup::new(group(vec![recording]));
    let run =
        evaluated.run(0, &[("up", &[("__name__=up,job=a", 1.0), ("__name__=up,job=b", 0.0)])]);
    assert_eq!(written(&run), [r#"job:up{job="a", team="x"} 1"#, r#"job:up{job="b", team="x"} 0"#]);
    let run = evaluated.run(1, &[("up", &[("__name__=up,job=a", 1.0)])]);
    assert_eq!(
        written(&run),
        [r#"job:up{job="a", team="x"} 1"#, r#"job:up{job="b", team="x"} ends"#]
    );
    // After a failure, no series is known to have ended.
    let run = evaluated.run(2, &[]);
    assert_eq!(written(&run), <[&str; 0]>::default());
    assert_eq!(run.reports[0].error.as_deref(), Some("up failed"));
    let run = evaluated.run(3, &[("up", &[("job=a", 1.0), ("__name__=up,job=a", 1.0)])]);
    assert!(run.reports[0].error.as_ref().unwrap().contains("two series"), "{run:?}");
}

#[test]
fn alerts_become_series_with_their_state_and_time() {
    let annotations = [("summary".to_owned(), "{{ $labels.job }} {{ $value }}".to_owned())].into();
    let policy = AlertPolicy { annotations, for_ms: 60_000, ..AlertPolicy::default() };
    let mut alerting = rule("Down", "up == 0", Action::Alert(policy));
    alerting.labels = [("severity".to_owned(), "{{ $labels.job }}!".to_owned())].into();
    let mut evaluated = EvaluatedGroup::new(group(vec![alerting]));
    let down: (&str, &[(&str, f64)]) = ("up == 0", &[("__name__=up,job=a", 0.0)]);
    let run = evaluated.run(0, &[down]);
    let start_s = AT.0 / 1000;
    let series = r#"alertname="Down""#;
    assert_eq!(
        written(&run),
        [
            format!(r#"ALERTS{{{series}, alertstate="pending", job="a", severity="a!"}} 1"#),
            format!(r#"ALERTS_FOR_STATE{{{series}, job="a", severity="a!"}} {start_s}"#),
        ]
    );
    let run = evaluated.run(1, &[down]);
    let alert = &evaluated.state.rules["Down"].alerts[0];
    assert_eq!(alert.state, AlertState::Firing);
    assert_eq!(alert.annotations["summary"], "a 0");
    assert_eq!(
        written(&run),
        [
            format!(r#"ALERTS{{{series}, alertstate="firing", job="a", severity="a!"}} 1"#),
            format!(r#"ALERTS_FOR_STATE{{{series}, job="a", severity="a!"}} {start_s}"#),
            format!(r#"ALERTS{{{series}, alertstate="pending", job="a", severity="a!"}} ends"#),
        ]
    );
    // A failed evaluation changes no alert.
    evaluated.run(2, &[]);
    assert_eq!(evaluated.state.rules["Down"].alerts[0].state, AlertState::Firing);
    let run = evaluated.run(3, &[("up == 0", &[])]);
    assert_eq!((run.samples.len(), run.ended.len()), (0, 2));
    // An ended alert has no series after a restart.
    assert_eq!(evaluated.state.series_of("Down").len(), 0);
}

#[test]
fn a_groups_limit_fails_the_rule() {
    let alert = |name: &str| rule(name, "x", Action::Alert(AlertPolicy::default()));
    let mut limited = group(vec![rule("r", "x", Action::Record), alert("A")]);
    limited.limit = 1;
    let mut evaluated = EvaluatedGroup::new(limited);
    evaluated.run(0, &[("x", &[("a=1", 1.0)])]);
    assert_eq!(evaluated.state.rules["A"].alerts.len(), 1);
    let run = evaluated.run(1, &[("x", &[("a=1", 1.0), ("a=2", 1.0)])]);
    assert!(run.reports.iter().all(|report| report.error.as_ref().unwrap().contains("limit of 1")));
    assert_eq!(evaluated.state.rules["A"].alerts, [], "as in Prometheus");
}

/// A rule with very many alerts must be evaluated, or nobody would be notified.
#[test]
fn one_alert_represents_all_alerts_beyond_the_limit() {
    let policy = AlertPolicy { for_ms: 60_000, ..AlertPolicy::default() };
    let mut alerting = rule("A", "x", Action::Alert(policy));
    alerting.labels = [("severity".to_owned(), "page".to_owned())].into();
    let mut evaluated = EvaluatedGroup::new(group(vec![alerting]));
    let entries: Vec<_> = (0..30_000).map(|i| (format!("a={i:06}"), 1.0)).collect();
    let entries: Vec<_> = entries.iter().map(|(text, value)| (text.as_str(), *value)).collect();
    let names = |evaluated: &EvaluatedGroup, is_counted: &dyn Fn(&Alert) -> bool| -> Vec<String> {
        let alerts = evaluated.state.rules["A"].alerts.iter().filter(|alert| is_counted(alert));
        alerts.filter_map(|alert| alert.labels.get("a").cloned()).collect()
    };
    // Known alerts keep their records.
    evaluated.run(0, &[("x", &entries[29_990..])]);
    let run = evaluated.run(1, &[("x", &entries)]);
    assert_eq!(run.reports[0].left_out, 20_000);
    let firing = names(&evaluated, &|alert| alert.state == AlertState::Firing);
    assert_eq!((firing.len(), firing[0].as_str()), (10, "029990"));
    assert_eq!(names(&evaluated, &Alert::is_active).len(), ALERTS_MAX);
    let run = evaluated.run(2, &[("x", &entries)]);
    assert_eq!(run.reports[0].error, None);
    let left_out = |evaluated: &EvaluatedGroup| {
        let mut alerts = evaluated.state.rules["A"].alerts.iter();
        alerts.find(|alert| alert.labels.contains_key(LEFT_OUT)).cloned()
    };
    let representative = left_out(&evaluated).unwrap();
    assert_eq!((representative.state, representative.value), (AlertState::Firing, 20_000.0));
    assert!(
        representative.annotations["summary"].contains("20000 more alerts of A"),
        "{representative:?}"
    );
    assert_eq!(representative.labels["severity"], "page");
    // This alert ends with the others, and its record is removed, too.
    let run = evaluated.run(3, &[("x", &entries[..3])]);
    assert_eq!(run.reports[0].left_out, 0);
    assert_eq!(left_out(&evaluated).unwrap().resolved_at, Some(AT.0 + 180_000));
    assert_eq!(names(&evaluated, &Alert::is_active).len(), 3);
    evaluated.run(30, &[("x", &entries[..3])]);
    assert_eq!(left_out(&evaluated), None);
    assert_eq!(evaluated.state.rules["A"].alerts.len(), 3);
}

#[test]
fn alerts_beyond_the_limit_end_even_when_missing_samples_are_an_alert() {
    let policy = AlertPolicy {
        no_data: NoData::Alerting,
        measured: Some("y".into()),
        ..AlertPolicy::default()
    };
    let mut evaluated = EvaluatedGroup::new(group(vec![rule("A", "x", Action::Alert(policy))]));
    let entries: Vec<_> = (0..ALERTS_MAX + 500).map(|i| (format!("a={i:06}"), 1.0)).collect();
    let entries: Vec<_> = entries.iter().map(|(text, value)| (text.as_str(), *value)).collect();
    let run = evaluated.run(0, &[("x", &entries), ("y", &entries)]);
    assert_eq!(run.reports[0].left_out, 1000, "500 alerts, and 500 series that are not watched");
    for minute in [1, 2, 40, 41] {
        evaluated.run(minute, &[("x", &[]), ("y", &entries[..10])]);
        let alerts = &evaluated.state.rules["A"].alerts;
        let is_left_out = |alert: &&Alert| alert.labels.contains_key(LEFT_OUT) && alert.is_active();
        assert_eq!(alerts.iter().find(is_left_out), None, "{minute}");
    }
}

#[test]
fn rules_that_query_recorded_metrics_are_in_a_later_stage() {
    let record = |name: &str, expression: &str| rule(name, expression, Action::Record);
    let alert = |name: &str, expression: &str| {
        rule(name, expression, Action::Alert(AlertPolicy::default()))
    };
    let check = |rules: Vec<Rule>, expected: &[(usize, usize)]| {
        let found = stages(&group(rules)).into_iter().map(|stage| (stage.start, stage.end));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    };
    check(vec![record("a", "x"), record("b", "y"), alert("C", "z > 1")], &[(0, 3)]);
    check(vec![record("j:a", "x"), record("b", "j:a * 2"), record("c", "j:a")], &[(0, 1), (1, 3)]);
    check(
        vec![record("j:a", "x"), record("j:b", "j:a"), record("c", "j:b")],
        &[(0, 1), (1, 2), (2, 3)],
    );
    check(vec![record("j:a", "x"), alert("B", "{__name__=~\"j.*\"} > 1")], &[(0, 1), (1, 2)]);
    check(vec![alert("A", "x"), alert("B", "ALERTS{alertname=\"A\"}")], &[(0, 1), (1, 2)]);
    check(Vec::new(), &[(0, 0)]);
}
