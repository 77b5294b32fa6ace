//! Readings and counts of series that are split over several stores equal those of one store.

use granary::{
    model::{Kind, UnixMillis, graphite::Template},
    query::{
        Budget, ExpressionLimits, GraphiteStore, MatchOperator, ReadingsRequest, RenderRequest,
        SeriesMatcher, TagsRequest, cardinality, each_series, list_tags, newest_readings,
        series_counts, time_zone, whole_pattern,
    },
    store::Store,
};
use std::time::Duration;

use super::{HOSTS, LIMITS, MINUTE, NOW, READINGS, SAMPLES_MS, SERIES_COUNTS, Split, TSDB_STATUS};
use crate::promql::DAY0;

const LOOKBACK_MS: i64 = 1440 * MINUTE;

/// Returns the readings of matching series as text: all, and the newest.
fn readings(
    store: &Store,
    budget: &Budget,
    range: std::ops::Range<i64>,
    labels_only: bool,
) -> (Vec<String>, Vec<String>) {
    let limits = ExpressionLimits { budget, ..LIMITS };
    let matcher = |tag: &str, operator| SeriesMatcher { tag: tag.to_owned(), operator };
    let pattern = whole_pattern("h1?[0-9]", &limits).unwrap();
    let sets = [
        vec![matcher("__name__", MatchOperator::Equal("c".to_owned()))],
        vec![
            matcher("host", MatchOperator::Pattern(pattern)),
            matcher("dc", MatchOperator::NotEqual("dc1".to_owned())),
        ],
    ];
    let range = UnixMillis(DAY0 + range.start)..UnixMillis(DAY0 + range.end);
    let request = ReadingsRequest { range, labels_only };
    let (mut all, mut newest) = (Vec::new(), Vec::new());
    each_series(store, &sets, &request, &limits, NOW, &mut |series| {
        all.push(format!("{series:?}"));
        Ok(())
    })
    .unwrap();
    newest_readings(store, &sets, LOOKBACK_MS, &limits, NOW, &mut |series| {
        newest.push(format!("{series:?}"));
        Ok(())
    })
    .unwrap();
    (all, newest)
}

#[test]
fn readings_of_shards_are_those_of_one_store() {
    let mut split = Split::of_hosts();
    // One series is in two shards: each has every other sample.
    let tags = [("host", "both")];
    let id = split.whole.define("c", &tags, Kind::Gauge);
    split.whole.fill(id, MINUTE, |index| (index < 40).then_some(4.0));
    for shard in [0, 2] {
        let fixture = &mut split.shards[shard];
        let id = fixture.define("c", &tags, Kind::Gauge);
        let first = if shard == 0 { 0 } else { MINUTE };
        fixture.fill_from(id, first, 2 * MINUTE, |index| (index < 20).then_some(4.0));
    }
    for (start, end, labels_only) in
        [(0, SAMPLES_MS, false), (5 * MINUTE, 9 * MINUTE + 1, false), (0, SAMPLES_MS, true)]
    {
        let budget = split.resources.budget(Duration::from_secs(600));
        let whole = readings(split.whole.store(), &Budget::UNLIMITED, start..end, labels_only);
        split.others.answers.lock().clear();
        let shards = readings(split.shards[0].store(), &budget, start..end, labels_only);
        assert!(whole.0.len() > HOSTS, "{}", whole.0.len());
        assert_eq!(shards, whole, "{start} {end} {labels_only}");
        let answers = split.others.answers.lock();
        assert!(answers.len() == 4 && answers.iter().all(|(kind, _)| kind == READINGS));
    }
}

#[test]
fn counts_of_shards_are_those_of_one_store() {
    let split = Split::of_hosts();
    for count in [1, 3, 100] {
        let budget = split.resources.budget(Duration::from_secs(600));
        let whole = series_counts(split.whole.store(), count, &Budget::UNLIMITED).unwrap();
        let shards = series_counts(split.shards[0].store(), count, &budget).unwrap();
        assert_eq!(shards, whole);
        assert_eq!(whole.series, 2 * HOSTS as u64);
        let answers = split.others.answers.lock();
        assert!(answers.iter().all(|(kind, _)| kind == SERIES_COUNTS));
    }
}

#[test]
fn the_largest_names_of_shards_are_those_of_one_store() {
    let split = Split::of_hosts();
    for count in [0, 1, 3, 100] {
        let budget = split.resources.budget(Duration::from_secs(600));
        let limits = ExpressionLimits { budget: &budget, ..LIMITS };
        let text = |store: &Store, limits: &ExpressionLimits<'_>| {
            serde_json::to_string(&cardinality(store, count, limits).unwrap()).unwrap()
        };
        split.others.answers.lock().clear();
        let whole = text(split.whole.store(), &LIMITS);
        assert_eq!(text(split.shards[0].store(), &limits), whole);
        assert!(whole.contains(&format!(r#""numSeries":{}"#, 2 * HOSTS)), "{whole}");
        assert!(count < 3 || whole.contains(r#"{"name":"dc=dc0","value":10}"#), "{whole}");
        let answers = split.others.answers.lock();
        assert!(answers.len() == 2 && answers.iter().all(|(kind, _)| kind == TSDB_STATUS));
    }
}

/// Returns the answers to Graphite's queries as text.
fn graphite(store: &Store, budget: &Budget) -> Vec<String> {
    let limits = ExpressionLimits { budget, ..LIMITS };
    let templates = [Template::parse("hosts.* _.host.metric*").unwrap()];
    let named = GraphiteStore { store, templates: &templates };
    let mut all = Vec::new();
    for target in [
        "hosts.*.d",
        "hosts.{h1,h2,h13}.*",
        "seriesByTag('name=c', 'dc=~dc[12]')",
        "sumSeries(hosts.*.d)",
        "consolidateBy(seriesByTag('name=g'), 'max')",
        "timeShift(seriesByTag('name=c', 'host=h3'), '10min')",
        "missing.*",
        "both",
    ] {
        for points in [None, Some(7)] {
            let time = |at: i64| Some(((DAY0 + at) / 1000).to_string());
            let (from, until) = (time(15 * MINUTE), time(SAMPLES_MS));
            let request = RenderRequest { targets: vec![target.to_owned()], from, until, points };
            let zone = time_zone("UTC").unwrap();
            let answer = named.render(&request, &zone, &limits, NOW).unwrap();
            all.push(format!("{target} {points:?} {:?}", answer.lines));
        }
    }
    for pattern in ["*", "hosts.*", "hosts.h*.*", "missing"] {
        all.push(format!("{pattern} {:?}", named.find(pattern, &limits).unwrap()));
    }
    let conditions = vec!["host=~h".to_owned(), "dc!=dc2".to_owned()];
    all.push(format!("{:?}", named.series_by_tag(&conditions, &limits).unwrap()));
    for (conditions, tag) in
        [(Vec::new(), None), (conditions.clone(), None), (conditions, Some("host".to_owned()))]
    {
        let request = TagsRequest { conditions, tag, prefix: String::new(), limit: 5 };
        all.push(format!("{:?}", list_tags(store, &request, &limits).unwrap()));
    }
    all
}

#[test]
fn graphite_shows_the_series_of_shards_as_those_of_one_store() {
    let mut split = Split::of_hosts();
    for host in 0..HOSTS {
        let name = format!("h{host}");
        let level = |index: i64| Some(((index + host as i64) % 13) as f64);
        split.fill(("d", &[("host", &*name)], Kind::Gauge), host % 2, level);
    }
    // One series is in two shards: each has every other sample.
    let id = split.whole.define("both", &[], Kind::Gauge);
    split.whole.fill(id, MINUTE, |index| (index < 40).then_some(index as f64));
    for shard in [0, 2] {
        let fixture = &mut split.shards[shard];
        let id = fixture.define("both", &[], Kind::Gauge);
        let first = i64::from(shard != 0);
        let value = |index: i64| (index < 20).then_some((2 * index + first) as f64);
        fixture.fill_from(id, first * MINUTE, 2 * MINUTE, value);
    }
    let budget = split.resources.budget(Duration::from_secs(600));
    let whole = graphite(split.whole.store(), &Budget::UNLIMITED);
    let shards = graphite(split.shards[0].store(), &budget);
    for (found, expected) in shards.iter().zip(&whole) {
        assert_eq!(found, expected);
    }
    assert!(whole[0].contains("h16.d") && whole[14].contains("39.0"), "{} {}", whole[0], whole[14]);
}
