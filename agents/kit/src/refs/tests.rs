//! What the parent module promises, by name.

use std::sync::Arc;

use super::*;
use crate::{KnownReading, Series};

fn readings() -> Readings {
    let mut readings = Readings::default();
    readings.gauge("load", "", &[("host", "a")], 1.5);
    readings.counter("reads", "operations", &[("disk", "sda"), ("host", "a")], 7.0, Some(99));
    readings
}

#[test]
fn refs_are_defined_once_and_survive_a_restart() {
    let mut problems = BTreeMap::new();
    let mut refs = Refs::new(&[], Vec::new());
    let first = refs.batch("a", 10, &readings(), &mut problems);
    assert_eq!((first.refs.clone(), first.starts.clone()), (vec![0, 1], vec![0, 99]));
    assert_eq!(first.series.len(), 2);
    let second = refs.batch("a", 20, &readings(), &mut problems);
    assert_eq!((second.refs, second.series), (vec![0, 1], vec![]));

    let mut restarted = Refs::new(&first.series, Vec::new());
    let mut more = readings();
    more.gauge("load", "", &[("host", "b")], 2.0);
    let third = restarted.batch("a", 30, &more, &mut problems);
    assert_eq!(third.refs, [0, 1, 2]);
    assert_eq!(third.series.iter().map(|s| s.reference).collect::<Vec<_>>(), [2]);
    assert_eq!(problems, BTreeMap::new());
}

#[test]
fn a_series_read_twice_counts_once() {
    let mut problems = BTreeMap::new();
    let mut twice = readings();
    twice.gauge("load", "", &[("host", "a")], 9.0);
    let batch = Refs::new(&[], Vec::new()).batch("a", 10, &twice, &mut problems);
    assert_eq!(batch.values, [1.5, 7.0]);
    assert!(problems.contains_key("series load"));
}

#[test]
fn past_the_limit_old_series_go_on_and_new_ones_are_refused() {
    let mut problems = BTreeMap::new();
    let mut refs = Refs::new(&[], Vec::new());
    refs.batch("a", 10, &readings(), &mut problems);
    refs.next_ref = SERIES_MAX;
    let mut more = readings();
    more.gauge("load", "", &[("host", "b")], 2.0);
    let batch = refs.batch("a", 20, &more, &mut problems);
    assert_eq!(batch.refs, [0, 1]);
    assert_eq!(problems.len(), 1);

    let mut refs = Refs::new(&[], Vec::new());
    let mut long = readings();
    long.gauge("x".repeat(SERIES_BYTES_MAX), "", &[], 2.0);
    let batch = refs.batch("a", 30, &long, &mut problems);
    assert_eq!((batch.refs, refs.known.len()), (vec![0, 1], 2));
}

#[test]
fn a_series_that_was_described_before_has_its_ref_and_times_of_its_own() {
    let mut problems = BTreeMap::new();
    let mut refs = Refs::new(&[], Vec::new());
    let tags = vec![("host".to_owned(), "a".to_owned())];
    let series = Arc::new(Series::new("load", tags, Kind::Gauge, ""));
    let known = |value, time_ms| KnownReading {
        series: Arc::clone(&series),
        value,
        time_ms,
        start_ms: None,
    };
    let mut both = Readings::new(vec![("env".to_owned(), "prod".to_owned())]);
    both.push_known(known(1.0, 3));
    both.push_known(known(2.0, 8));
    both.push_known(known(7.0, 8));
    both.push_known(known(f64::NAN, 9));
    both.gauge("load", "", &[("host", "a")], 4.0);
    let batch = refs.batch("a", 10, &both, &mut problems);
    assert_eq!(batch.refs, [0, 0, 0, 0], "the same series, however it is read");
    assert_eq!(batch.times, [10, 3, 8, 9]);
    assert_eq!(batch.values[..3], [4.0, 1.0, 2.0]);
    assert_eq!(batch.series.len(), 1);
    assert!(problems.contains_key("series load"), "{problems:?}");
    // Of another spool it has another ref.
    let mut other = Refs::new(&[SeriesDefinition::default()], Vec::new());
    assert_eq!(other.batch("a", 10, &both, &mut problems).refs, [1, 1, 1, 1]);
}

#[test]
fn rules_drop_rename_and_join_series_before_they_are_known() {
    let rules = serde_json::json!([
        {"source_labels": ["__name__"], "regex": "reads", "action": "drop"},
        {"source_labels": ["__name__"], "regex": "load|lode", "target_label": "__name__", "replacement": "system_load"},
        {"regex": "host", "action": "labeldrop"},
    ]);
    let rules: Vec<Rule> = serde_json::from_value(rules).unwrap();
    let mut refs = Refs::new(&[], rules.clone());
    let mut problems = BTreeMap::new();
    for round in 0..2 {
        let batch = refs.batch("a", round, &readings(), &mut problems);
        assert_eq!(batch.refs, [0], "round {round}");
        assert_eq!(batch.series.len(), usize::from(round == 0));
    }
    assert_eq!(problems, BTreeMap::new());
    let mut more = readings();
    more.gauge("lode", "", &[], 3.0);
    let batch = refs.batch("a", 3, &more, &mut problems);
    assert_eq!((batch.refs, batch.series), (vec![0], vec![]), "one series, read twice");
    assert_eq!(problems.len(), 1);
    refs.set_rules(Vec::new());
    let batch = refs.batch("a", 4, &readings(), &mut problems);
    assert_eq!(batch.refs, [1, 2], "without rules they are what they are read as");
}
