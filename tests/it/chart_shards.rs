//! Charts of series that are split over several stores, merged as cells, and the series that moved:
//! they equal those of one store with all series.

use granary::{
    model::{Display, Kind, UnixMillis},
    query::{
        Budget, ChartAnswer, ChartRequest, ChartStep, MovedRequest, QueryError, QueryLimits, Rank,
        Resolution, Selector, SeriesMerge, chart, chart_of_shards, chart_step, moved,
        moved_of_shard, moved_of_shards,
    },
    store::{Appender, Store},
};

use crate::setup::{self, HOUR, MINUTE, define, samples, send, series};

pub(crate) const START: i64 = 1_795_219_200_000;
pub(crate) const NOW: UnixMillis = UnixMillis(START + HOUR);
pub(crate) const LIMITS: QueryLimits =
    QueryLimits { lines_max: 100, series_max: 100, points_max: 100_000 };
const SHARDS: usize = 3;
const HOSTS: usize = 11;

pub(crate) struct Opened {
    pub(crate) store: Store,
    pub(crate) appender: Appender,
    _dir: tempfile::TempDir,
}

fn open() -> Opened {
    let dir = tempfile::tempdir().unwrap();
    let (store, appender) = setup::open(dir.path(), UnixMillis(START));
    Opened { store, appender, _dir: dir }
}

fn fill(to: &mut Opened, (metric, tags, kind): (&str, &[(&str, &str)], Kind), step: f64) {
    let id = define(&mut to.appender, &[series(metric, tags, kind)], UnixMillis(START))[0];
    let points = (0..50).map(|index| (START + index * MINUTE, step * (index % 7) as f64));
    let total = (0..50).map(|index| (START + index * MINUTE, step * index as f64));
    let points: Vec<_> = if kind == Kind::Gauge { points.collect() } else { total.collect() };
    send(&mut to.appender, samples(id, points), NOW);
}

/// Returns a store with all series, and the stores of shards.
pub(crate) fn split() -> (Opened, Vec<Opened>) {
    let (mut whole, mut shards) = (open(), (0..SHARDS).map(|_| open()).collect::<Vec<_>>());
    for host in 0..HOSTS {
        let (name, dc) = (format!("h{host}"), format!("dc{}", host % 2));
        let tags = [("dc", &*dc), ("host", &*name), ("zone", "z")];
        for (metric, kind) in [("level", Kind::Gauge), ("total", Kind::Counter)] {
            let shard = if kind == Kind::Gauge { host } else { host + 1 } % SHARDS;
            for to in [&mut whole, &mut shards[shard]] {
                fill(to, (metric, &tags, kind), (host * 5 % HOSTS) as f64 * 0.25);
            }
        }
    }
    (whole, shards)
}

fn of_shards(shards: &[Opened], request: &ChartRequest) -> Result<ChartAnswer, QueryError> {
    let ask = |step: &ChartStep| {
        let answer = |shard: &Opened| {
            chart_step(&shard.store, &Budget::UNLIMITED, (request, step), &LIMITS, NOW)
        };
        shards.iter().map(answer).collect()
    };
    chart_of_shards(&Budget::UNLIMITED, request, &ask, &LIMITS, NOW)
}

fn request(metric: &str, merge: SeriesMerge, rank: Option<Rank>) -> ChartRequest {
    let selector = Selector { metric: Some(metric.to_owned()), tags: Vec::new() };
    let range = UnixMillis(START)..NOW;
    ChartRequest { merge, rank, ..ChartRequest::new(selector, Resolution::Auto, range) }
}

#[test]
fn charts_of_shards_equal_those_of_one_store() {
    let (whole, shards) = split();
    let merges = [
        SeriesMerge::Nothing,
        SeriesMerge::All,
        SeriesMerge::By(vec!["dc".to_owned()]),
        SeriesMerge::By(vec!["host".to_owned(), "dc".to_owned()]),
    ];
    let rank = |count, by, lowest| Some(Rank { count, by, lowest });
    let ranks = [
        None,
        rank(3, None, false),
        rank(2, Some(Display::of_kind(Kind::Gauge)), true),
        rank(40, None, false),
    ];
    for metric in ["level", "total"] {
        for merge in &merges {
            for rank in ranks {
                let mut request = request(metric, merge.clone(), rank);
                for resolution in ["auto", "5m", "1m", "hour"] {
                    let Ok(named) = resolution.parse();
                    request.resolution = named;
                    let expected =
                        chart(&whole.store, &Budget::UNLIMITED, &request, &LIMITS, NOW).unwrap();
                    let found = of_shards(&shards, &request).unwrap();
                    assert!(!expected.series.is_empty());
                    assert_eq!(found, expected, "{metric} {merge:?} {rank:?} {resolution}");
                }
            }
        }
    }
}

#[test]
fn a_line_of_a_series_in_two_shards_has_the_cells_of_both() {
    let (mut whole, mut shards) = split();
    let define_in = |to: &mut Opened| {
        let info = series("level", &[("host", "both")], Kind::Gauge);
        define(&mut to.appender, &[info], UnixMillis(START))[0]
    };
    let points = |first: i64| {
        (0..25)
            .map(move |index| (START + first * MINUTE / 2 + index * MINUTE, 1000.0 + first as f64))
    };
    for (shard, first) in [(0, 0), (2, 1)] {
        let id = define_in(&mut shards[shard]);
        send(&mut shards[shard].appender, samples(id, points(first)), NOW);
    }
    let id = define_in(&mut whole);
    let mut all: Vec<_> = points(0).chain(points(1)).collect();
    all.sort_by_key(|(at, _)| *at);
    send(&mut whole.appender, samples(id, all), NOW);
    let rank = Some(Rank { count: 2, by: None, lowest: false });
    for (merge, rank) in [
        (SeriesMerge::Nothing, None),
        (SeriesMerge::Nothing, rank),
        (SeriesMerge::By(vec!["host".to_owned()]), rank),
    ] {
        let mut request = request("level", merge, rank);
        request.resolution = Resolution::Named("1m".to_owned());
        let expected = chart(&whole.store, &Budget::UNLIMITED, &request, &LIMITS, NOW).unwrap();
        let mut found = of_shards(&shards, &request).unwrap();
        // A merged line counts the series once for each shard.
        for line in &mut found.series {
            line.merged = line.merged.map(|_| 1);
        }
        assert_eq!(found, expected, "{request:?}");
    }
}

#[test]
fn missing_series_have_one_note_and_limits_count_the_lines_of_all_shards() {
    let (_, shards) = split();
    let missing = of_shards(&shards, &request("levle", SeriesMerge::Nothing, None)).unwrap();
    assert!(missing.series.is_empty());
    assert_eq!(missing.notes, ["no metric is called levle; the nearest is level"]);
    let limits = QueryLimits { lines_max: 5, ..LIMITS };
    let request = request("level", SeriesMerge::Nothing, None);
    let ask = |step: &ChartStep| {
        let answer = |shard: &Opened| {
            chart_step(&shard.store, &Budget::UNLIMITED, (&request, step), &LIMITS, NOW)
        };
        shards.iter().map(answer).collect()
    };
    let refused = chart_of_shards(&Budget::UNLIMITED, &request, &ask, &limits, NOW);
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("11 lines exceed the limit of 5"), "{message}");
}

#[test]
fn series_of_shards_move_as_those_of_one_store() {
    let (mut whole, mut shards) = split();
    // Each of these moves by a different factor.
    for host in 0..HOSTS {
        let (name, tags) = (format!("h{host}"), ["host"]);
        let tags = [(tags[0], &*name)];
        for to in [&mut whole, &mut shards[host % SHARDS]] {
            let info = series("queue", &tags, Kind::Gauge);
            let id = define(&mut to.appender, &[info], UnixMillis(START))[0];
            let moved = 10.0 + host as f64;
            let value = |index: i64| (index % 3) as f64 + if index < 25 { 1.0 } else { moved };
            let points = (0..50).map(|index| (START + index * MINUTE, value(index)));
            send(&mut to.appender, samples(id, points), NOW);
        }
    }
    // This series is in one shard.
    for to in [&mut whole, &mut shards[1]] {
        fill(to, ("alone", &[("host", "h1")], Kind::Gauge), 1.0);
    }
    let stretch = UnixMillis(START + 25 * MINUTE)..UnixMillis(START + 50 * MINUTE);
    for (metric, top) in
        [(Some("queue"), 4), (Some("queue"), 100), (Some("alone"), 4), (Some("missing"), 4)]
    {
        // A query may hold few slots: all shards use wider ones.
        for points_max in [100_000, 13] {
            let limits = QueryLimits { points_max, ..LIMITS };
            let selector = Selector { metric: metric.map(str::to_owned), tags: Vec::new() };
            let request = MovedRequest::new(selector, stretch.clone(), Some(top)).unwrap();
            let expected = moved(&whole.store, &Budget::UNLIMITED, &request, &limits, NOW);
            let ask = |resolution: &str| {
                let answer = |shard: &Opened| {
                    let request = (&request, resolution);
                    moved_of_shard(&shard.store, &Budget::UNLIMITED, request, &limits, NOW)
                };
                shards.iter().map(answer).collect()
            };
            let found = moved_of_shards(&request, &ask);
            match (found, expected) {
                (Ok(found), Ok(expected)) => {
                    assert_eq!(found, expected, "{metric:?} {top} {points_max}");
                    assert_eq!(found.moved > 0, metric == Some("queue"), "{found:?}");
                }
                (found, expected) => {
                    let text = |answer: Result<_, QueryError>| answer.map(drop).unwrap_err();
                    assert_eq!(text(found).to_string(), text(expected).to_string());
                }
            }
        }
    }
}
