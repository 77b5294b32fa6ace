//! Tests of the ranking over a store.

use super::*;
use crate::{
    model::{AcceptedBatch, SeriesInfo},
    setup::{self, HOUR, MINUTE, NOW},
};

/// The start of the samples: the first hour is before the stretch, which is the second hour.
const FIRST: i64 = NOW.0 - NOW.0 % HOUR;
const STRETCH: Range<UnixMillis> = UnixMillis(FIRST + HOUR)..UnixMillis(FIRST + 2 * HOUR);
const LIMITS: QueryLimits = QueryLimits { lines_max: 10, series_max: 20, points_max: 100_000 };

fn host_series(host: &str) -> Vec<SeriesInfo> {
    let of = |metric: &str, kind| setup::series(metric, &[("host", host)], kind);
    vec![
        of("constant", Kind::Gauge),
        of("noise", Kind::Gauge),
        of("requests", Kind::Counter),
        of("queue", Kind::Gauge),
        of("begins", Kind::Gauge),
        of("ends", Kind::Gauge),
    ]
}

/// Stores two hours of a host, a sample a minute. On a host that `moves`, the rate of requests
/// halves and the queue grows twentyfold in the second hour; a series begins, another ends.
fn store_host(store: &Store, appender: &mut crate::store::Appender, host: &str, moves: bool) {
    let series = setup::define(appender, &host_series(host), UnixMillis(FIRST));
    let mut requests = 0.0;
    for minute in 0..120 {
        let is_later = moves && minute >= 60;
        requests += if is_later { 300.0 } else { 600.0 };
        let noise = 50.0 + f64::from((minute * 37) % 11);
        let queue = f64::from(minute % 3) + if is_later { 20.0 } else { 1.0 };
        let edge = |is_later: bool| (!moves || is_later).then_some(7.0);
        let values = [
            Some(3.0),
            Some(noise),
            Some(requests),
            Some(queue),
            edge(minute >= 60),
            edge(minute < 60),
        ];
        let sent = series.iter().zip(values).filter_map(|(id, value)| Some((*id, value?)));
        let (series, values): (Vec<_>, Vec<_>) = sent.unzip();
        let at = FIRST + i64::from(minute) * MINUTE;
        let times = vec![at; values.len()];
        let batch = AcceptedBatch { series, times, values, ..AcceptedBatch::default() };
        setup::send(appender, batch, UnixMillis(at));
    }
    store.checkpoint(STRETCH.end).unwrap();
}

fn tagged(host: &str) -> Selector {
    Selector { metric: None, tags: vec![("host".to_owned(), host.to_owned())] }
}

fn rank(store: &Store, selector: Selector, top: usize) -> MovedAnswer {
    let request = MovedRequest::new(selector, STRETCH, Some(top)).unwrap();
    moved(store, &Budget::UNLIMITED, &request, &LIMITS, STRETCH.end).unwrap()
}

fn names(answer: &MovedAnswer) -> Vec<&str> {
    answer.series.iter().map(|found| &*found.series.metric).collect()
}

#[test]
fn series_that_changed_are_ranked_with_their_values_and_points() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), UnixMillis(FIRST));
    store_host(&store, &mut appender, "db", true);
    store_host(&store, &mut appender, "web", false);
    let answer = rank(&store, tagged("db"), 24);
    assert_eq!((answer.compared, answer.moved), (6, 4));
    let mut found = names(&answer);
    assert_eq!(found.len(), 4);
    found[2..].sort_unstable();
    assert!(!found[..2].contains(&"begins"), "{found:?}");
    assert_eq!(found[2..], ["begins", "ends"]);
    let of = |metric: &str| answer.series.iter().find(|s| s.series.metric == metric).unwrap();
    let requests = of("requests");
    assert_eq!((&*requests.display, requests.median_before), ("avg_per_sec", Some(10.0)));
    assert!((requests.mean_during.unwrap() - 5.0).abs() < 0.1, "{requests:?}");
    assert_eq!((of("begins").median_before, of("ends").mean_during), (None, None));
    let queue = of("queue");
    assert_eq!((queue.points.len(), queue.points[0].0), (120, FIRST));
    assert_eq!((answer.before, answer.start), (FIRST, STRETCH.start.0));
    assert_eq!((answer.end, &*answer.resolution), (STRETCH.end.0, "1m"));
    // The other host is quiet.
    assert_eq!(rank(&store, tagged("web"), 24).moved, 0);
    // All series together: the same series lead, and only as many as requested are returned.
    let all = rank(&store, Selector::default(), 2);
    assert_eq!((all.compared, all.moved), (12, 4));
    assert_eq!(names(&all), names(&answer)[..2]);
    let metric = Selector { metric: Some("queue".to_owned()), tags: Vec::new() };
    assert_eq!(rank(&store, metric, 9).series[0].series.tags["host"], "db");
}

#[test]
fn a_stretch_needs_three_slots_on_each_side() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), UnixMillis(FIRST));
    store_host(&store, &mut appender, "db", true);
    let fault = |stretch: Range<UnixMillis>| {
        let request = MovedRequest::new(Selector::default(), stretch, None).unwrap();
        moved(&store, &Budget::UNLIMITED, &request, &LIMITS, STRETCH.end).unwrap_err().to_string()
    };
    let minutes = |n: i64| STRETCH.start..STRETCH.start.plus(n * MINUTE);
    assert!(fault(minutes(2)).contains("2 ended slots of 1m"), "{}", fault(minutes(2)));
    let future = STRETCH.end.plus(1)..STRETCH.end.plus(HOUR);
    assert!(fault(future).contains("future"));
    assert!(MovedRequest::new(Selector::default(), STRETCH, Some(0)).is_err());
    assert!(MovedRequest::new(Selector::default(), STRETCH, Some(TOP_MAX + 1)).is_err());
}

#[test]
fn the_number_of_series_is_limited_by_the_budget_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), UnixMillis(FIRST));
    store_host(&store, &mut appender, "db", true);
    let request = MovedRequest::new(tagged("db"), STRETCH, None).unwrap();
    let within = |series_max: usize, points_max: usize| {
        let limits = QueryLimits { series_max, points_max, ..LIMITS };
        moved(&store, &Budget::UNLIMITED, &request, &limits, STRETCH.end)
    };
    // All series have more slots than a query may hold, and one has not.
    let all = within(1, SLOTS_MAX).unwrap();
    assert_eq!((all.compared, all.moved, &*all.resolution), (6, 4, "1m"));
    let wider = within(1, SLOTS_MAX - 1).unwrap();
    assert_eq!((wider.moved, &*wider.resolution), (4, "5m"));
    assert!(matches!(within(1, 1), Err(QueryError::TooMuch(_))));
    let small = Budget::of_memory(1000);
    let refused = moved(&store, &small, &request, &LIMITS, STRETCH.end);
    assert!(matches!(refused, Err(QueryError::Busy(_))), "{refused:?}");
}
