//! Readings for other databases: samples with their real times, stale markers, and limits.

use std::ops::Range;

use granary::{
    model::{Kind, STALE_MARKER, UnixMillis, is_stale_marker},
    query::{
        Budget, ExpressionLimits, QueryError, ReadingsRequest, SeriesReadings, each_series,
        newest_readings, series_matchers,
    },
    store::{Appender, Store},
};

use crate::setup::{self, DAY, HOUR, MINUTE, SECOND, samples, send, series};

/// The start of a day in 2026, at which the samples begin.
const DAY0: i64 = 1_795_219_200_000;

const LIMITS: ExpressionLimits<'static> = ExpressionLimits {
    series_max: 100,
    points_max: 10_000,
    steps_max: 11_000,
    query_bytes_max: 65_536,
    regex_bytes_max: 1 << 20,
    budget: &Budget::UNLIMITED,
};

struct Fixture {
    store: Store,
    appender: Appender,
    now: UnixMillis,
    _dir: tempfile::TempDir,
}

fn fixture(now: i64) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let now = UnixMillis(now);
    let (store, appender) = setup::open(dir.path(), now);
    Fixture { store, appender, now, _dir: dir }
}

impl Fixture {
    fn fill(&mut self, metric: &str, kind: Kind, points: impl IntoIterator<Item = (i64, f64)>) {
        let id = setup::define(&mut self.appender, &[series(metric, &[], kind)], self.now)[0];
        let points = points.into_iter().map(|(at, value)| (DAY0 + at, value));
        send(&mut self.appender, samples(id, points), self.now);
    }

    fn try_readings(
        &self,
        selector: &str,
        range: Range<i64>,
        limits: &ExpressionLimits<'_>,
    ) -> Result<Vec<SeriesReadings>, QueryError> {
        let sets = series_matchers(selector, limits)?;
        let range = UnixMillis(DAY0 + range.start)..UnixMillis(DAY0 + range.end);
        let request = ReadingsRequest { range, labels_only: false };
        let mut all = Vec::new();
        each_series(&self.store, &sets, &request, limits, self.now, &mut |series| {
            all.push(series);
            Ok(())
        })?;
        Ok(all)
    }

    /// Returns the readings of the only matching series; their times are relative to `DAY0`.
    fn readings(&self, selector: &str, range: Range<i64>) -> Vec<(i64, f64)> {
        let mut all = self.try_readings(selector, range, &LIMITS).unwrap();
        assert!(all.len() <= 1, "{all:?}");
        let readings = all.pop().map(|series| series.readings).unwrap_or_default();
        readings.into_iter().map(|(at, value)| (at - DAY0, value)).collect()
    }
}

#[test]
fn slots_of_up_to_two_samples_return_them_exactly_and_other_slots_return_their_first_and_last() {
    let mut fixture = fixture(DAY0 + HOUR);
    let exact_readings: Vec<_> = (0..20).map(|i| (30 * SECOND * i + 7, i as f64)).collect();
    fixture.fill("exact", Kind::Gauge, exact_readings.clone());
    assert_eq!(fixture.readings("exact", 0..HOUR), exact_readings);
    let within = fixture.readings("exact", 60_007..90_007);
    assert_eq!(within, [(60_007, 2.0)], "the end is exclusive");
    fixture.fill("merged", Kind::Gauge, (0..8).map(|i| (15 * SECOND * i, i as f64)));
    let ends = [(0, 0.0), (45_000, 3.0), (60_000, 4.0), (105_000, 7.0)];
    assert_eq!(fixture.readings("merged", 0..HOUR), ends);
    // A delta counts the events since the previous reading: the last reading of a slot has the sum.
    fixture.fill("events", Kind::Delta, (0..8).map(|i| (15 * SECOND * i, i as f64)));
    assert_eq!(fixture.readings("events", 0..HOUR), [(45_000, 6.0), (105_000, 22.0)]);
}

#[test]
fn a_stale_marker_ends_a_series_and_a_gap_has_no_readings() {
    let mut fixture = fixture(DAY0 + HOUR);
    fixture.fill("ends", Kind::Gauge, [(0, 1.0), (MINUTE, 2.0), (2 * MINUTE, STALE_MARKER)]);
    let readings = fixture.readings("ends", 0..HOUR);
    assert_eq!(readings[..2], [(0, 1.0), (MINUTE, 2.0)]);
    assert_eq!((readings.len(), readings[2].0), (3, 2 * MINUTE));
    assert!(is_stale_marker(readings[2].1));
    assert_eq!(fixture.readings("ends", 0..2 * MINUTE).len(), 2, "the marker is after the range");
    fixture.fill("gap", Kind::Counter, [(0, 1.0), (20 * MINUTE, 2.0)]);
    assert_eq!(fixture.readings("gap", 0..HOUR), [(0, 1.0), (20 * MINUTE, 2.0)]);
}

#[test]
fn older_times_are_answered_by_the_finest_granularity_that_has_them() {
    // Minutes are kept for two days, five minutes for two weeks.
    let mut fixture = fixture(DAY0 + 3 * HOUR);
    fixture.fill("level", Kind::Gauge, (0..180).map(|i| (MINUTE * i, i as f64)));
    assert_eq!(fixture.readings("level", 0..HOUR).len(), 60);
    fixture.now = UnixMillis(DAY0 + 5 * DAY);
    let coarse = fixture.readings("level", 0..HOUR);
    assert_eq!(coarse.len(), 24, "the first and the last of each five minutes");
    assert_eq!(coarse[..3], [(0, 0.0), (4 * MINUTE, 4.0), (5 * MINUTE, 5.0)]);
    fixture.now = UnixMillis(DAY0 + 60 * DAY);
    assert_eq!(fixture.readings("level", 0..HOUR), [(0, 0.0), (59 * MINUTE, 59.0)]);
}

#[test]
fn the_newest_reading_is_within_the_lookback_and_not_stale() {
    let mut fixture = fixture(DAY0 + 10 * MINUTE);
    fixture.fill("fresh", Kind::Gauge, (0..11).map(|i| (MINUTE * i - 1, i as f64)).skip(1));
    fixture.fill("old", Kind::Gauge, [(5 * MINUTE, 1.0)]);
    fixture.fill("stale", Kind::Gauge, [(9 * MINUTE, 1.0), (9 * MINUTE + 1, STALE_MARKER)]);
    let sets = series_matchers("{__name__=~\".+\"}", &LIMITS).unwrap();
    let mut found = Vec::new();
    newest_readings(&fixture.store, &sets, 5 * MINUTE, &LIMITS, fixture.now, &mut |series| {
        found.push((series.labels.to_string(), series.readings));
        Ok(())
    })
    .unwrap();
    assert_eq!(found, [("fresh".to_owned(), vec![(DAY0 + 10 * MINUTE - 1, 10.0)])]);
}

#[test]
fn errors_name_the_exceeded_limit() {
    let mut fixture = fixture(DAY0 + HOUR);
    fixture.fill("a", Kind::Gauge, (0..30).map(|i| (MINUTE * i, i as f64)));
    let limited_points = ExpressionLimits { points_max: 20, ..LIMITS };
    let error = fixture.try_readings("a", 0..HOUR, &limited_points).unwrap_err().to_string();
    assert!(error.contains("more than 20 slots") && error.contains("query_points_max"), "{error}");
    let limited_series = ExpressionLimits { series_max: 0, ..LIMITS };
    let error = fixture.try_readings("a", 0..HOUR, &limited_series).unwrap_err().to_string();
    assert!(error.contains("limits.query_points_max"), "{error}");
    let small_budget = Budget::of_memory(100);
    let limited_memory = ExpressionLimits { budget: &small_budget, ..LIMITS };
    let error = fixture.try_readings("a", 0..HOUR, &limited_memory).unwrap_err().to_string();
    assert!(error.contains("limits.query_memory_max"), "{error}");
}
