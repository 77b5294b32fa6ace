//! Calendar buckets against a naive model: each sample is counted in the bucket of its local time
//! and date, in any zone, across clock changes, and before a checkpoint.

use std::collections::BTreeMap;

use granary::{
    model::{AcceptedBatch, Kind, SeriesId, UnixMillis},
    query::{
        Budget, CalendarUnit, ChartRequest, Display, QueryLimits, Resolution, Selector,
        SeriesMerge, chart, time_zone,
    },
    store::Store,
};
use jiff::{Zoned, tz::TimeZone};
use proptest::prelude::*;

use crate::setup::{DAY, WITHIN as NOW, define, granularities, open_with, series};

/// Starts of periods with clock changes: in spring in America and in Europe, and in autumn.
const STARTS: [&str; 3] = ["2026-03-05T00:00:00Z", "2026-03-26T00:00:00Z", "2026-10-20T00:00:00Z"];
const DAYS: i64 = 16;
const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "-02:30",
];

/// Returns the name of a bucket, computed only from the local calendar.
fn bucket(unit: CalendarUnit, local: &Zoned) -> String {
    let week = local.date().iso_week_date();
    match unit {
        CalendarUnit::Hour => local.strftime("%Y-%m-%d %H %:z").to_string(),
        CalendarUnit::Day => local.date().to_string(),
        CalendarUnit::Week => format!("{} W{}", week.year(), week.week()),
        CalendarUnit::TwoWeeks => {
            let monday = week.year_week_monday();
            let anchor: jiff::civil::Date = "1970-01-05".parse().unwrap();
            (anchor.until(monday).unwrap().get_days() / 14).to_string()
        }
        CalendarUnit::Month => local.strftime("%Y-%m").to_string(),
        CalendarUnit::Quarter => format!("{} Q{}", local.year(), (local.month() + 2) / 3),
        CalendarUnit::Year => local.year().to_string(),
        CalendarUnit::Days(days) => {
            let anchor: jiff::civil::Date = "1970-01-05".parse().unwrap();
            let days_since_anchor = anchor.until(local.date()).unwrap().get_days();
            days_since_anchor.div_euclid(days).to_string()
        }
    }
}

trait Monday {
    fn year_week_monday(self) -> jiff::civil::Date;
}

impl Monday for jiff::civil::ISOWeekDate {
    fn year_week_monday(self) -> jiff::civil::Date {
        let monday = jiff::civil::Weekday::Monday;
        Self::new(self.year(), self.week(), monday).unwrap().date()
    }
}

struct FilledStore {
    store: Store,
    _dir: tempfile::TempDir,
}

/// Returns a store with samples of two series; the first `checkpointed_count` samples are
/// checkpointed.
fn fill_store(samples: &[(u32, i64, i32)], checkpointed_count: usize) -> FilledStore {
    let dir = tempfile::tempdir().unwrap();
    let set = granularities(&[
        ["5m", "4h", "1d", "3360d"],
        ["1h", "1d", "1w", "3360d"],
        ["1d", "1mo", "1y", "10y"],
    ]);
    let (store, mut appender) = open_with(dir.path(), &set, NOW);
    let hosts = ["a", "b"].map(|host| series("views", &[("host", host)], Kind::Delta));
    define(&mut appender, &hosts, NOW);
    let (first, rest) = samples.split_at(checkpointed_count.min(samples.len()));
    for part in [first, rest] {
        let batch = AcceptedBatch {
            series: part.iter().map(|(series, ..)| SeriesId(*series)).collect(),
            times: part.iter().map(|(_, at, _)| *at).collect(),
            values: part.iter().map(|(.., value)| f64::from(*value)).collect(),
            ..AcceptedBatch::default()
        };
        if !part.is_empty() {
            appender.commit(&[], &[batch], NOW).unwrap();
        }
        if part == first {
            store.checkpoint(NOW).unwrap();
        }
    }
    FilledStore { store, _dir: dir }
}

fn check(filled: &FilledStore, samples: &[(u32, i64, i32)], unit: CalendarUnit, zone: &TimeZone) {
    let local = |at: i64| UnixMillis(at).timestamp().to_zoned(zone.clone());
    let mut expected: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for (_, at, value) in samples {
        let (n, sum) = expected.entry(bucket(unit, &local(*at))).or_default();
        *n += 1.0;
        *sum += f64::from(*value);
    }
    let times = || samples.iter().map(|(_, at, _)| *at);
    let range = times().min().unwrap()..times().max().unwrap() + 1;
    let request = ChartRequest {
        displays: vec![Display::Count, Display::Total, Display::Avg],
        time_zone: Some(zone.clone()),
        merge: SeriesMerge::All,
        ..ChartRequest::new(
            Selector { metric: Some("views".into()), tags: Vec::new() },
            Resolution::Calendar(unit),
            UnixMillis(range.start)..UnixMillis(range.end),
        )
    };
    let limits = QueryLimits::new(10, 1_000_000);
    let answer = chart(&filled.store, &Budget::UNLIMITED, &request, &limits, NOW).unwrap();
    assert_eq!(answer.notes, Vec::<String>::new());
    let [counts, totals, averages] = &answer.series[..] else { panic!("{answer:?}") };
    let mut found = BTreeMap::new();
    for (index, (start, count)) in counts.points.iter().enumerate() {
        let Some(count) = count else { continue };
        let total = totals.points[index].1.unwrap();
        assert_eq!(averages.points[index].1, Some(total / count));
        let found_bucket = bucket(unit, &local(*start));
        assert_eq!(found.insert(found_bucket, (*count, total)), None, "duplicate bucket");
    }
    assert_eq!(found, expected, "{} in {:?}", unit.name(), zone.iana_name());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn every_sample_is_counted_in_the_bucket_of_its_local_time(
        start in prop::sample::select(STARTS.to_vec()),
        samples in prop::collection::vec((0..2_u32, 0..DAYS * DAY, -9..99_i32), 1..120),
        checkpointed_count in 0..120_usize,
    ) {
        let start = start.parse::<jiff::Timestamp>().unwrap().as_millisecond();
        let samples: Vec<_> =
            samples.into_iter().map(|(series, at, value)| (series, start + at, value)).collect();
        let filled = fill_store(&samples, checkpointed_count);
        for zone in ZONES {
            let zone = time_zone(zone).unwrap();
            for (unit, _) in CalendarUnit::NAMED {
                check(&filled, &samples, unit, &zone);
            }
            check(&filled, &samples, CalendarUnit::Days(3), &zone);
        }
    }
}
