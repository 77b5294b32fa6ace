//! Tests of the assignment of refs.

use std::sync::Arc;

use super::*;
use crate::{KnownReading, Series};

fn readings() -> Readings {
    let mut readings = Readings::default();
    readings.gauge("load", "", &[("host", "a")], 1.5);
    readings.counter("reads", "operations", &[("disk", "sda"), ("host", "a")], 7.0, Some(99));
    readings
}

fn refs_of(definitions: &[SeriesDefinition]) -> Refs {
    let mut refs = Refs::new(Vec::new());
    for definition in definitions {
        refs.remember(definition);
    }
    refs
}

fn all_batches(
    refs: &mut Refs,
    time_ms: i64,
    readings: &Readings,
    problems: &mut BTreeMap<String, String>,
) -> Vec<Batch> {
    let mut all = Vec::new();
    let write = |batch| -> Result<(), ()> {
        all.push(batch);
        Ok(())
    };
    refs.batches(("a", time_ms), readings, problems, write).unwrap();
    all
}

fn one_batch(
    refs: &mut Refs,
    time_ms: i64,
    readings: &Readings,
    problems: &mut BTreeMap<String, String>,
) -> Batch {
    let mut all = all_batches(refs, time_ms, readings, problems);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Regression: a round that defined 200,000 series briefly used 150 MB.
#[test]
fn a_long_round_becomes_several_batches() {
    let mut readings = Readings::default();
    for index in 0..12_001 {
        readings.gauge(format!("m{index}"), "", &[], 1.0);
    }
    let (mut refs, mut problems) = (refs_of(&[]), BTreeMap::new());
    let sizes = |all: Vec<Batch>| -> Vec<(usize, usize)> {
        all.iter().map(|batch| (batch.series.len(), batch.refs.len())).collect()
    };
    let first = all_batches(&mut refs, 10, &readings, &mut problems);
    assert_eq!(sizes(first), [(5_000, 5_000), (5_000, 5_000), (2_001, 2_001)]);
    for index in 12_001..30_000 {
        readings.gauge(format!("m{}", index % 12_001), "", &[("n", &index.to_string())], 1.0);
    }
    all_batches(&mut refs, 20, &readings, &mut problems);
    let third = all_batches(&mut refs, 30, &readings, &mut problems);
    assert!(third.iter().all(|batch| batch.times == [30]));
    assert_eq!(sizes(third), [(0, 25_000), (0, 5_000)]);
    assert_eq!(problems, BTreeMap::new());
}

#[test]
fn refs_are_defined_once_and_survive_a_restart() {
    let mut problems = BTreeMap::new();
    let mut refs = refs_of(&[]);
    let first = one_batch(&mut refs, 10, &readings(), &mut problems);
    assert_eq!((first.refs.clone(), first.starts.clone()), (vec![0, 1], vec![99]));
    assert_eq!(first.series.len(), 2);
    let second = one_batch(&mut refs, 20, &readings(), &mut problems);
    assert_eq!((second.refs, second.series), (vec![0, 1], vec![]));

    let mut restarted = refs_of(&first.series);
    let mut with_new_series = readings();
    with_new_series.gauge("load", "", &[("host", "b")], 2.0);
    let third = one_batch(&mut restarted, 30, &with_new_series, &mut problems);
    assert_eq!(third.refs, [0, 1, 2]);
    assert_eq!(third.series.iter().map(|s| s.reference).collect::<Vec<_>>(), [2]);
    assert_eq!(problems, BTreeMap::new());
}

#[test]
fn two_readings_of_a_series_at_one_time_count_once() {
    let mut problems = BTreeMap::new();
    let mut with_duplicate = readings();
    with_duplicate.gauge("load", "", &[("host", "a")], 9.0);
    let batch = one_batch(&mut refs_of(&[]), 10, &with_duplicate, &mut problems);
    assert_eq!(batch.values, [1.5, 7.0]);
    assert!(problems.contains_key("series load"));
}

#[test]
fn above_the_limit_known_series_continue_and_new_series_are_rejected() {
    let mut problems = BTreeMap::new();
    let mut refs = refs_of(&[]);
    one_batch(&mut refs, 10, &readings(), &mut problems);
    refs.next_ref = SERIES_MAX;
    let mut with_new_series = readings();
    with_new_series.gauge("load", "", &[("host", "b")], 2.0);
    let batch = one_batch(&mut refs, 20, &with_new_series, &mut problems);
    assert_eq!(batch.refs, [0, 1]);
    assert_eq!(problems.len(), 1);

    let mut refs = refs_of(&[]);
    let mut with_long_name = readings();
    with_long_name.gauge("x".repeat(SERIES_BYTES_MAX), "", &[], 2.0);
    let batch = one_batch(&mut refs, 30, &with_long_name, &mut problems);
    assert_eq!((batch.refs, refs.by_key.len()), (vec![0, 1], 2));
}

#[test]
fn a_described_series_has_the_same_ref_and_keeps_the_times_of_its_readings() {
    let mut problems = BTreeMap::new();
    let mut refs = refs_of(&[]);
    let tags = vec![("host".to_owned(), "a".to_owned())];
    let series = Arc::new(Series::new("load", tags, Kind::Gauge, ""));
    let known = |value, time_ms| KnownReading {
        histogram: None,
        series: Arc::clone(&series),
        value,
        time_ms,
        start_ms: None,
    };
    let mut all_readings = Readings::new(vec![("env".to_owned(), "prod".to_owned())]);
    all_readings.push_known(known(1.0, 3));
    all_readings.push_known(known(2.0, 8));
    all_readings.push_known(known(7.0, 8));
    all_readings.push_known(known(f64::NAN, 9));
    all_readings.gauge("load", "", &[("host", "a")], 4.0);
    let batch = one_batch(&mut refs, 10, &all_readings, &mut problems);
    assert_eq!(batch.refs, [0, 0, 0, 0], "both forms of readings share the ref");
    assert_eq!(batch.times, [10, 3, 8, 9]);
    assert_eq!(batch.values[..3], [4.0, 1.0, 2.0]);
    assert_eq!(batch.series.len(), 1);
    assert!(problems.contains_key("series load"), "{problems:?}");
    // Each spool assigns its own refs; this spool already uses ref 0.
    let mut other = refs_of(&[SeriesDefinition::default()]);
    assert_eq!(one_batch(&mut other, 10, &all_readings, &mut problems).refs, [1, 1, 1, 1]);
}

#[test]
fn rules_drop_rename_and_join_series_before_refs_are_assigned() {
    let rules = serde_json::json!([
        {"source_labels": ["__name__"], "regex": "reads", "action": "drop"},
        {"source_labels": ["__name__"], "regex": "load|lode", "target_label": "__name__", "replacement": "system_load"},
        {"regex": "host", "action": "labeldrop"},
    ]);
    let rules: Vec<Rule> = serde_json::from_value(rules).unwrap();
    let mut refs = Refs::new(rules.clone());
    let mut problems = BTreeMap::new();
    for round in 0..2 {
        let batch = one_batch(&mut refs, round, &readings(), &mut problems);
        assert_eq!(batch.refs, [0], "round {round}");
        assert_eq!(batch.series.len(), usize::from(round == 0));
    }
    assert_eq!(problems, BTreeMap::new());
    let mut with_new_series = readings();
    with_new_series.gauge("lode", "", &[], 3.0);
    let batch = one_batch(&mut refs, 3, &with_new_series, &mut problems);
    assert_eq!((batch.refs, batch.series), (vec![0], vec![]), "two readings of one series");
    assert_eq!(problems.len(), 1);
    refs.set_rules(Vec::new());
    let batch = one_batch(&mut refs, 4, &readings(), &mut problems);
    assert_eq!(batch.refs, [1, 2], "without rules, series keep their names");
}
