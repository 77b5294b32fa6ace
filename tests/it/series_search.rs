//! Search finds metrics by words, and facets agree with a naive count.

use std::collections::{BTreeMap, BTreeSet};

use granary::{
    model::Kind,
    query::{
        Budget, FindAnswer, FindRequest, QueryError, Selector, TagFacet, ValueFacet, facets, find,
    },
    store::{ChangeAction, Matcher, SeriesChange, Store},
};
use proptest::prelude::*;

use crate::setup::{self, NOW};

fn search(store: &Store, text: &str, count: usize) -> FindAnswer {
    let request = FindRequest::new(text, Some(count)).unwrap();
    find(store, &Budget::UNLIMITED, &request).unwrap()
}

#[test]
fn the_best_matches_of_thousands_of_metrics_are_found_with_their_series() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), NOW);
    let mut series: Vec<_> = (0..5000)
        .map(|n| setup::series(&format!("noise_{n}_loads"), &[("host", "a")], Kind::Gauge))
        .collect();
    for host in ["a", "b", "c"] {
        let load = setup::series("system_load", &[("host", host)], Kind::Counter);
        series.push(granary::model::SeriesInfo { unit: "tasks".into(), ..load });
    }
    setup::define(&mut appender, &series, NOW);
    let answer = search(&store, "LOAD", 2);
    assert_eq!((answer.total, answer.metrics.len()), (5001, 2));
    let first = &search(&store, "load system", 2).metrics[0];
    assert_eq!((first.metric.as_str(), first.series), ("system_load", 3));
    assert_eq!((first.kind, first.unit.as_str()), (Kind::Counter, "tasks"));
    assert_eq!(answer.metrics[1].metric, "noise_0_loads");
    assert_eq!(search(&store, "", 1).total, 5001);
    // A deleted metric is not found.
    let matchers = vec![Matcher { tag: "host".into(), value: "b".into() }];
    let change = SeriesChange { matchers, action: ChangeAction::Delete };
    appender.change(&change, NOW).unwrap().unwrap();
    assert_eq!(search(&store, "system_load", 9).metrics[0].series, 2);
}

/// Generates the tags of a series, or filters: with few names and values, many filters match.
fn any_tags() -> impl Strategy<Value = BTreeMap<String, String>> {
    let text = |words: &'static [&'static str]| prop::sample::select(words).prop_map(str::to_owned);
    let (names, values) = (["host", "dc", "core", "app"], ["a", "b", "c"]);
    let (names, values) = (text(names.to_vec().leak()), text(values.to_vec().leak()));
    prop::collection::btree_map(names, values, 0..4)
}

type Tags = BTreeMap<String, String>;

/// Returns the values of a tag with the number of series that match the other filters.
fn count_naively(all: &BTreeSet<Tags>, filters: &Tags, name: &str) -> Option<TagFacet> {
    let matches_other_filters = |tags: &&Tags| {
        filters.iter().all(|(other, value)| other == name || tags.get(other) == Some(value))
    };
    let mut counts = BTreeMap::<_, usize>::new();
    for value in all.iter().filter(matches_other_filters).filter_map(|tags| tags.get(name)) {
        *counts.entry(value.clone()).or_default() += 1;
    }
    let mut values: Vec<_> =
        counts.into_iter().map(|(value, series)| ValueFacet { value, series }).collect();
    values.sort_by_key(|count| std::cmp::Reverse(count.series));
    let name = name.to_owned();
    (!values.is_empty()).then_some(TagFacet { name, values_total: values.len(), values })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn facets_equal_a_naive_count(
        all in prop::collection::btree_set(any_tags(), 0..40),
        filters in any_tags(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (store, mut appender) = setup::open(dir.path(), NOW);
        let definition = |metric: &str, tags: &Tags| {
            let tags: Vec<_> = tags.iter().map(|(name, value)| (&**name, &**value)).collect();
            setup::series(metric, &tags, Kind::Gauge)
        };
        let tagged = all.iter().map(|tags| definition("m", tags));
        let series: Vec<_> = tagged.chain([definition("other", &filters)]).collect();
        setup::define(&mut appender, &series, NOW);
        let selector = Selector {
            metric: Some("m".into()),
            tags: filters.clone().into_iter().collect(),
        };
        let answer = facets(&store, &Budget::UNLIMITED, &selector).unwrap();
        let is_match =
            |tags: &&Tags| filters.iter().all(|(name, value)| tags.get(name) == Some(value));
        prop_assert_eq!(answer.series, all.iter().filter(is_match).count());
        let expected: Vec<_> =
            ["app", "core", "dc", "host"].iter().filter_map(|name| count_naively(&all, &filters, name)).collect();
        prop_assert_eq!(answer.tags_total, expected.len());
        prop_assert_eq!(answer.tags, expected);
        prop_assert_eq!(answer.series == 0, !answer.notes.is_empty());
    }
}

#[test]
fn facets_show_the_values_with_most_series_and_count_their_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), NOW);
    let name = |n: usize| format!("h{n:04}");
    let host_series = |n: usize, core: &str| {
        setup::series("m", &[("host", &name(n)), ("core", core)], Kind::Gauge)
    };
    let mut series: Vec<_> = (0..2000).map(|n| host_series(n, "0")).collect();
    series.extend((1000..1060).map(|n| host_series(n, "1")));
    setup::define(&mut appender, &series, NOW);
    let selector = Selector { metric: Some("m".into()), tags: Vec::new() };
    let budget = Budget::of_memory(10 << 20);
    let answer = facets(&store, &budget, &selector).unwrap();
    let hosts = &answer.tags[1];
    assert_eq!((answer.series, hosts.values_total, hosts.values.len()), (2060, 2000, 50));
    let expected: Vec<_> = (1000..1050).map(|n| ValueFacet { value: name(n), series: 2 }).collect();
    assert_eq!(hosts.values, expected);
    assert!(budget.reserved() > 2000 * 5);
    let fault = facets(&store, &Budget::of_memory(50_000), &selector).unwrap_err();
    assert!(matches!(fault, QueryError::Busy(_)), "{fault}");
}
