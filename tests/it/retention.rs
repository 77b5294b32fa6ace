//! Seventy days on a simulated clock: at each granularity, whole files disappear on time, and
//! charts continue in the next coarser granularity.

use std::{collections::BTreeSet, path::Path};

use granary::{
    actors::drop_expired,
    model::{AcceptedBatch, Deduplication, Kind, SeriesId, UnixMillis},
    query::{Budget, ChartRequest, Display, QueryLimits, Resolution, Selector, chart},
    store::Store,
};

use crate::setup::{
    DAY, HOUR, MINUTE, define, granularities, open, open_with, samples, send, series,
};

/// 2026-09-12T00:00:00Z
const START: UnixMillis = UnixMillis(1_789_171_200_000);
const LIMITS: QueryLimits = QueryLimits { lines_max: 100, series_max: 10, points_max: 1_000_000 };

fn partition_files(root: &Path) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for level in ["1m", "5m", "1h", "1d"] {
        for entry in std::fs::read_dir(root.join("partitions").join(level)).into_iter().flatten() {
            paths.insert(format!("{level}/{}", entry.unwrap().file_name().to_string_lossy()));
        }
    }
    paths
}

/// Returns the expected partition files, computed from the default spans: partitions within their
/// retention whose first document period is over.
fn expected_files(now: UnixMillis) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let mut add = |level: &str, spans: [i64; 3], origin: i64, format: &str| {
        let [document, span, keep] = spans;
        let first = (START.0 - origin).div_euclid(span) * span + origin;
        for start in (first..=now.0).step_by(span as usize) {
            let first_document = start.max(START.0) / document * document;
            if start + span + keep > now.0 && first_document + document <= now.0 {
                let civil = UnixMillis(start).civil();
                paths.insert(format!("{level}/{}.redb", civil.strftime(format)));
            }
        }
    };
    add("1m", [HOUR, 6 * HOUR, 48 * HOUR], 0, "%Y-%m-%dT%H%M");
    add("5m", [4 * HOUR, DAY, 14 * DAY], 0, "%Y-%m-%d");
    // Weeks begin on Monday; 1970-01-05 was a Monday.
    add("1h", [DAY, 7 * DAY, 63 * DAY], 4 * DAY, "%Y-%m-%d");
    if now.civil().date().first_of_month() > START.civil().date() {
        paths.insert("1d/2026-01-01.redb".to_owned());
    }
    paths
}

#[test]
fn a_series_is_deleted_when_its_last_sample_expires_or_a_day_after_it_was_found_without_samples() {
    let dir = tempfile::tempdir().unwrap();
    let set = granularities(&[["1m", "1h", "1h", "2h"], ["5m", "1h", "2h", "6h"]]);
    let (store, mut appender) = open_with(dir.path(), &set, START);
    let all = ["silent", "going_on", "never_sampled"].map(|name| series(name, &[], Kind::Counter));
    let ids = define(&mut appender, &all, START);
    let deduplication = Deduplication::ByTime { window_ms: 600_000 };
    let silent = AcceptedBatch { deduplication, ..samples(ids[0], [(START.0, 1.0)]) };
    appender.commit(&[], &[silent], START).unwrap();
    let times_seen =
        |store: &Store| store.memory().into_iter().find(|memory| memory.0 == "times_seen");
    assert!(times_seen(&store).is_some_and(|(_, bytes)| bytes > 0));
    let mut now = START;
    let mut forgotten_at = [None; 3];
    while now.0 < START.0 + 30 * HOUR {
        now = now.plus(10 * MINUTE);
        send(&mut appender, samples(ids[1], [(now.0, 1.0)]), now);
        store.checkpoint(now).unwrap();
        assert!(drop_expired(&store, now).failed.is_none());
        let is_over = |index: &usize| match index {
            0 => now.0 >= START.0 + 8 * HOUR,
            // This is a day after the first check.
            2 => now.0 >= START.0 + DAY + 10 * MINUTE,
            _ => false,
        };
        let is_present = |index: &usize| forgotten_at[*index].is_none();
        let expected: Vec<_> = (0..3).filter(is_present).filter(is_over).collect();
        let candidates = store.series_without_samples(now, 9);
        let expected_ids: Vec<_> = expected.iter().map(|index| ids[*index]).collect();
        assert_eq!(candidates, expected_ids, "at {now}");
        // Series with samples, stored or in flight, are not deleted, even on request.
        let forgotten = appender.forget_series(&ids, now).unwrap();
        assert_eq!(forgotten, expected.len(), "at {now}");
        for index in expected {
            forgotten_at[index] = Some(now);
        }
    }
    assert_eq!(forgotten_at[0], Some(START.plus(8 * HOUR)));
    let find_series = |store: &Store, index: usize| store.dictionary().find(&all[index].key);
    let expected = [None, Some(ids[1]), None];
    assert_eq!([0, 1, 2].map(|index| find_series(&store, index)), expected);
    // A batch that was resolved earlier names a deleted series.
    let late = samples(ids[0], [(now.0, 1.0)]);
    assert!(appender.names_forgotten(&[samples(ids[1], [(now.0, 1.0)]), late]));
    assert!(!appender.names_forgotten(&[samples(ids[1], [(now.0, 1.0)])]));
    assert_eq!(define(&mut appender, &all[..1], now), [SeriesId(3)]);
    drop((store, appender));
    let (store, _) = open_with(dir.path(), &set, now);
    let expected = [Some(SeriesId(3)), Some(ids[1]), None];
    assert_eq!([0, 1, 2].map(|index| find_series(&store, index)), expected);
    // Cached results of the series do not reappear.
    assert_eq!(times_seen(&store), Some(("times_seen", 0)));
    assert_eq!(store.last_samples(&ids[..1]), [None]);
}

#[test]
fn seventy_days_of_samples_leave_the_expected_partitions_and_the_right_total() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), START);
    let page = series("page_views", &[("page", "/index.htm")], Kind::Delta);
    let id = define(&mut appender, &[page], START)[0];
    let mut now = START;
    let mut sent = 0;
    while now.0 < START.0 + 70 * DAY {
        // One event every ten minutes, sent every six hours.
        let batch = samples(id, (0..36).map(|i| (now.0 + i * 10 * MINUTE, 1.0)));
        sent += batch.values.len();
        now = now.plus(6 * HOUR);
        send(&mut appender, batch, now.minus(1));
        store.checkpoint(now.minus(1)).unwrap();
        assert!(drop_expired(&store, now.minus(1)).failed.is_none());
        assert_eq!(partition_files(dir.path()), expected_files(now.minus(1)), "at {now}");
    }
    let selector = Selector { metric: Some("page_views".into()), tags: Vec::new() };
    let request = |resolution: &str| {
        let resolution = Resolution::Named(resolution.into());
        let request = ChartRequest::new(selector.clone(), resolution, START..now);
        ChartRequest { displays: vec![Display::Total], ..request }
    };
    for resolution in ["1m", "5m", "1h", "1d"] {
        let answer = chart(&store, &Budget::UNLIMITED, &request(resolution), &LIMITS, now).unwrap();
        let total: f64 = answer.series[0].points.iter().filter_map(|(_, value)| *value).sum();
        assert_eq!(total, sent as f64, "{resolution}");
        assert_eq!(answer.notes.is_empty(), resolution == "1d", "{:?}", answer.notes);
    }
}
