//! Charts of counters: growth in a gap between readings is spread over the slots of the gap, and a
//! part of a chart equals the same part of the whole chart.

use std::ops::Range;

use granary::{
    model::{
        AcceptedBatch, Display, GranularitySet, Kind, SeriesId, UnixMillis,
        counter::spread::{Gap, spacing_ms},
    },
    query::{
        Budget, ChartAnswer, ChartRequest, QueryLimits, Rank, Resolution, Selector, SeriesMerge,
        chart,
    },
    store::{Appender, ErasureRequest, Matcher, Store},
};
use proptest::prelude::*;

use crate::setup::{
    DAY, HOUR, MINUTE, SECOND, SIX, define, granularities, open_with, samples, series,
};

/// Readings of a counter, in milliseconds from [`SIX`] on.
type Readings = Vec<(i64, f64)>;

const LIMITS: QueryLimits = QueryLimits { lines_max: 100, series_max: 100, points_max: 1_000_000 };

struct FilledStore {
    _dir: tempfile::TempDir,
    store: Store,
    appender: Appender,
    now: UnixMillis,
}

/// Returns a store with the readings of each counter; the tag `host` is the counter's index.
fn fill_store(set: &GranularitySet, counters: &[Readings], now: i64) -> FilledStore {
    let dir = tempfile::tempdir().unwrap();
    let now = SIX.plus(now);
    let (store, mut appender) = open_with(dir.path(), set, now);
    for (index, readings) in counters.iter().enumerate() {
        let host = index.to_string();
        let counter = series("bytes", &[("host", &host)], Kind::Counter);
        let id: SeriesId = define(&mut appender, &[counter], now)[0];
        let times = readings.iter().map(|(at, value)| (SIX.0 + at, *value));
        let batch: AcceptedBatch = samples(id, times);
        appender.commit(&[], &[batch], now).unwrap();
    }
    FilledStore { _dir: dir, store, appender, now }
}

impl FilledStore {
    fn chart(&self, change: impl FnOnce(&mut ChartRequest), range: (i64, i64)) -> ChartAnswer {
        let selector = Selector { metric: Some("bytes".into()), ..Selector::default() };
        let range = SIX.plus(range.0)..SIX.plus(range.1);
        let mut request = ChartRequest::new(selector, Resolution::Named("1m".into()), range);
        request.displays = vec![Display::Total];
        change(&mut request);
        chart(&self.store, &Budget::UNLIMITED, &request, &LIMITS, self.now).unwrap()
    }

    fn totals(&self, resolution: &str, range: (i64, i64)) -> Vec<(i64, Option<f64>)> {
        let set_resolution = |request: &mut ChartRequest| {
            request.resolution = Resolution::Named(resolution.to_owned());
        };
        self.chart(set_resolution, range).series[0].points.clone()
    }
}

fn values_of(points: &[(i64, Option<f64>)]) -> Vec<Option<f64>> {
    points.iter().map(|(_, number)| *number).collect()
}

#[test]
fn the_growth_over_a_gap_is_spread_over_its_slots() {
    let readings = (1..12).chain(61..72).map(|i| (i * 5 * SECOND, (i * 5) as f64)).collect();
    let filled = fill_store(&GranularitySet::default(), &[readings], DAY);
    let all = [50.0, 60.0, 60.0, 60.0, 60.0, 60.0].map(Some);
    assert_eq!(values_of(&filled.totals("1m", (0, 6 * MINUTE))), all);
    // No reading is within the range, or only at one end of the range.
    assert_eq!(values_of(&filled.totals("1m", (2 * MINUTE, 4 * MINUTE))), all[2..4]);
    assert_eq!(values_of(&filled.totals("1m", (0, 3 * MINUTE))), all[..3]);
    assert_eq!(values_of(&filled.totals("1m", (3 * MINUTE, 6 * MINUTE))), all[3..]);
    assert_eq!(values_of(&filled.totals("5m", (0, 10 * MINUTE))), [290.0, 60.0].map(Some));
    assert_eq!(values_of(&filled.totals("1h", (0, HOUR))), [Some(350.0)]);
}

#[test]
fn a_gap_of_a_constant_counter_shows_zeros_and_a_gap_before_a_reset_shows_nothing() {
    let constant = vec![(30 * SECOND, 7.0), (5 * MINUTE, 7.0)];
    let reset = vec![(30 * SECOND, 7.0), (5 * MINUTE, 3.0)];
    let filled = fill_store(&GranularitySet::default(), &[constant, reset], DAY);
    let answer = filled.chart(|_| {}, (0, 6 * MINUTE));
    let [constant, reset] = [0, 1].map(|host| values_of(&answer.series[host].points));
    assert_eq!(constant, [Some(0.0); 6]);
    assert_eq!(reset, [Some(0.0), None, None, None, None, Some(3.0)]);
}

#[test]
fn slots_finer_than_readings_show_the_true_rate_and_auto_selects_no_finer_slots() {
    let set = granularities(&[["1s", "1m", "1h", "6h"], ["1m", "1h", "6h", "2d"]]);
    let readings = (0..60).map(|i| (i * 10 * SECOND + 3, (i * 30) as f64)).collect();
    let filled = fill_store(&set, &[readings], 10 * MINUTE);
    let range = (MINUTE, 9 * MINUTE);
    let rate = |request: &mut ChartRequest| {
        request.displays = vec![Display::AvgPerSec];
        request.resolution = Resolution::Named("1s".into());
    };
    let answer = filled.chart(rate, range);
    assert!(answer.series[0].points.iter().all(|(_, number)| *number == Some(3.0)));
    let auto = |request: &mut ChartRequest| {
        request.displays = vec![Display::AvgPerSec];
        request.resolution = Resolution::Auto;
    };
    let answer = filled.chart(auto, range);
    assert_eq!(answer.resolution, "15s");
    assert_eq!(answer.notes, ["readings arrive every 10s: slots of 1s would be finer"]);
}

#[test]
fn the_current_slot_does_not_affect_the_order() {
    // The last reading of host 0 is before the current minute; host 1 has reported a high value in
    // it.
    let reporting = vec![(0, 0.0), (55 * SECOND, 60.0)];
    let late = vec![(0, 0.0), (50 * SECOND, 10.0), (61 * SECOND, 5000.0)];
    let filled = fill_store(&GranularitySet::default(), &[reporting, late], 70 * SECOND);
    let top = |request: &mut ChartRequest| {
        request.merge = SeriesMerge::Nothing;
        request.rank = Some(Rank { count: 1, by: None, lowest: false });
    };
    let answer = filled.chart(top, (0, 2 * MINUTE));
    assert_eq!(answer.series[0].series.tags["host"], "0");
    assert_eq!(answer.incomplete_from, Some(SIX.0 + MINUTE));
}

#[test]
fn a_first_reading_counts_if_its_counter_started_after_the_senders_previous_round() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open_with(dir.path(), &GranularitySet::default(), SIX);
    let definitions =
        ["old", "born", "near", "found", "alone"].map(|metric| series(metric, &[], Kind::Counter));
    let ids = define(&mut appender, &definitions, SIX);
    // Each reading has the age of its counter: the first is of a host that booted 16 minutes ago,
    // the others are of programs on it.
    let mut send = |at: i64, readings: &[(usize, f64, i64)]| {
        let at = SIX.0 + at;
        let batch = AcceptedBatch {
            series: readings.iter().map(|(index, ..)| ids[*index]).collect(),
            times: vec![at],
            starts: readings.iter().map(|(.., age)| at - age).collect(),
            values: readings.iter().map(|(_, value, _)| *value).collect(),
            ..AcceptedBatch::default()
        };
        appender.commit(&[], &[batch], SIX.plus(HOUR)).unwrap();
    };
    let boot = 16 * MINUTE;
    send(5 * SECOND, &[(0, 2080.0, boot)]);
    let [born, near, found] = [(1, 5.0, 9 * SECOND), (2, 6.0, 20 * SECOND), (3, 7.0, 21 * SECOND)];
    send(15 * SECOND, &[(0, 2100.0, boot + 10 * SECOND), born, near, found]);
    // Without a previous round of the sender, the reading counts if the counter started within the
    // slot.
    send(90 * SECOND, &[(4, 8.0, 30 * SECOND)]);
    let sum = |index: usize| {
        let slots = crate::setup::slots(&store, 0, SIX..SIX.plus(HOUR), ids[index]);
        slots.iter().map(|slot| slot.cell.sum).sum::<f64>()
    };
    assert_eq!([0, 1, 2, 3, 4].map(sum), [20.0, 5.0, 6.0, 0.0, 8.0]);
}

/// Returns the expected growth in each minute.
fn naive_increases(readings: &Readings, minutes: i64) -> Vec<f64> {
    let mut sums = vec![0.0; minutes as usize];
    let slot = |at: i64| at.div_euclid(MINUTE);
    let in_slot = |of: i64| -> Vec<(i64, f64)> {
        readings.iter().copied().filter(|(at, _)| slot(*at) == of).collect()
    };
    let spacing = |of: i64| {
        let in_this_slot = in_slot(of);
        let ends = in_this_slot.first().zip(in_this_slot.last());
        ends.map_or(f64::INFINITY, |(a, b)| spacing_ms(in_this_slot.len() as u32, a.0, b.0))
    };
    let increase = |pair: &[(i64, f64)]| {
        let growth = pair[1].1 - pair[0].1;
        if growth < 0.0 { pair[1].1 } else { growth }
    };
    for pair in readings.windows(2) {
        sums[slot(pair[1].0) as usize] += increase(pair);
    }
    for pair in readings.windows(2) {
        let [before, after] = [pair[0], pair[1]];
        let reading = |(at, value): (i64, f64)| granary::model::Reading::new(SIX.0 + at, value, 0);
        let counted: f64 =
            readings.windows(2).filter(|pair| slot(pair[1].0) == slot(after.0)).map(increase).sum();
        let spacing = spacing(slot(before.0)).min(spacing(slot(after.0)));
        let in_slot_of_after = in_slot(slot(after.0));
        let counted = (counted, in_slot_of_after.last().unwrap().1);
        let gap = Gap::between(&reading(before), &reading(after), counted, spacing, MINUTE);
        let Some(gap) = gap.filter(|_| slot(before.0) < slot(after.0)) else { continue };
        for edge in slot(before.0) + 1..=slot(after.0) {
            let carried = gap.carried(SIX.0 + edge * MINUTE);
            sums[edge as usize - 1] += carried;
            sums[edge as usize] -= carried;
        }
    }
    sums
}

/// Generates readings with gaps of minutes and of hours, and resets.
fn any_readings() -> impl Strategy<Value = Readings> {
    let step = prop_oneof![
        8 => 5_000..20_000_i64,
        4 => 55_000..65_000_i64,
        2 => MINUTE..20 * MINUTE,
        1 => HOUR..3 * HOUR,
    ];
    prop::collection::vec((step, prop_oneof![9 => 0..1000_i64, 1 => Just(-1)]), 2..50).prop_map(
        |steps| {
            let (mut at, mut value) = (0, 0.0);
            let next = |(elapsed, growth): (i64, i64)| {
                at += elapsed;
                value = if growth < 0 { 0.0 } else { value + growth as f64 };
                (at, value)
            };
            steps.into_iter().map(next).collect()
        },
    )
}

/// Deletes the samples between two minutes.
fn delete(filled: &mut FilledStore, minutes: &Range<i64>) {
    let matchers = vec![Matcher { tag: "__name__".into(), value: "bytes".into() }];
    let range = SIX.plus(minutes.start * MINUTE)..SIX.plus(minutes.end * MINUTE);
    let request = ErasureRequest { matchers, range };
    filled.appender.erase(&request, false, filled.now).unwrap().unwrap();
    filled.store.complete_erasure().unwrap();
}

#[test]
fn a_chart_of_a_counter_shows_nothing_in_a_deleted_time_and_no_growth_of_it_later() {
    let readings = (0..24 * 60).map(|i| (i * 10 * SECOND + 3, (i * 10) as f64)).collect();
    let mut filled = fill_store(&GranularitySet::default(), &[readings], DAY);
    delete(&mut filled, &(60..120));
    let found = values_of(&filled.totals("1h", (0, 4 * HOUR)));
    assert_eq!(found, [Some(3590.0), None, Some(3600.0), Some(3600.0)]);
    let of_part = values_of(&filled.totals("1m", (119 * MINUTE, 121 * MINUTE)));
    assert_eq!(of_part, [None, Some(60.0)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn deleted_growth_of_a_counter_appears_in_no_chart(
        steps in prop::collection::vec((5_000..50_000_i64, 1..1000_i64), 50..500),
        deletions in prop::collection::vec((0.0..1.0, 1..90_i64), 1..4),
        reset in prop::option::of(0.0..1.0),
    ) {
        let (mut at, mut value, mut readings) = (0, 0.0, Readings::new());
        let reset = reset.map(|part| (part * steps.len() as f64) as usize);
        for (index, (elapsed, growth)) in steps.into_iter().enumerate() {
            at += elapsed;
            value = if reset == Some(index) { 1.0 } else { value + growth as f64 };
            readings.push((at, value));
        }
        let minutes = at / MINUTE + 1;
        let now = minutes * MINUTE + HOUR;
        let mut filled = fill_store(&GranularitySet::default(), &[readings.clone()], now);
        // Each reading with its growth; the first one adds nothing.
        let growth = |pair: &[(i64, f64)]| {
            let grown = pair[1].1 - pair[0].1;
            (pair[1].0, if grown < 0.0 { pair[1].1 } else { grown })
        };
        let mut grown: Vec<_> = readings.windows(2).map(growth).collect();
        grown.insert(0, (readings[0].0, 0.0));
        for (from, length) in deletions {
            let from = (from * minutes as f64) as i64;
            let range = from..from + length;
            delete(&mut filled, &range);
            grown.retain(|(at, _)| !range.contains(&(at / MINUTE)));
        }
        for (resolution, width) in [("1m", MINUTE), ("5m", 5 * MINUTE), ("1h", HOUR)] {
            let end = (minutes * MINUTE + width - 1) / width * width;
            let found = filled.totals(resolution, (0, end));
            let total: f64 = found.iter().filter_map(|(_, number)| *number).sum();
            prop_assert_eq!(total, grown.iter().map(|(_, growth)| growth).sum::<f64>());
            let expected: Vec<_> = (0..end / width).map(|slot| {
                let of_slot = grown.iter().filter(|(at, _)| at / width == slot);
                of_slot.map(|(_, growth)| *growth).reduce(|sum, growth| sum + growth)
            }).collect();
            // A counter that was reset may have grown less over a deleted time than before the
            // reset in the slot after that time.
            if reset.is_none() {
                prop_assert_eq!(values_of(&found), expected, "{}", resolution);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_part_of_a_chart_equals_the_naive_model(
        readings in any_readings(),
        parts in prop::collection::vec((0.0..1.0, 1..90_i64), 6),
        is_stored: bool,
    ) {
        let minutes = readings.last().unwrap().0 / MINUTE + 2;
        prop_assume!(minutes < 40 * 60);
        let counters = std::slice::from_ref(&readings);
        let now = minutes * MINUTE + HOUR;
        let filled = fill_store(&GranularitySet::default(), counters, now);
        if is_stored {
            filled.store.checkpoint(filled.now).unwrap();
        }
        let expected = naive_increases(&readings, minutes);
        let full_chart = filled.totals("1m", (0, minutes * MINUTE));
        let found: Vec<_> = full_chart.iter().map(|(_, number)| number.unwrap_or(0.0)).collect();
        prop_assert_eq!(&found, &expected);
        for (from, length) in parts {
            let from = (from * minutes as f64) as i64;
            let to = (from + length).min(minutes);
            let part = filled.totals("1m", (from * MINUTE, to * MINUTE));
            prop_assert_eq!(&part[..], &full_chart[from as usize..to as usize], "{} to {}", from, to);
        }
        // The total does not depend on the width of slots.
        for (resolution, width) in [("5m", 5), ("15m", 15), ("1h", 60)] {
            let wide = filled.totals(resolution, (0, minutes * MINUTE));
            let total: f64 = wide.iter().filter_map(|(_, number)| *number).sum();
            prop_assert_eq!(total, expected.iter().sum::<f64>());
            prop_assert!(wide.len() as i64 >= minutes / width);
        }
    }
}
