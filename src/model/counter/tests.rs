//! Counters against the naive model, in every order for which results are guaranteed.

use std::collections::BTreeMap;

use proptest::prelude::*;

use self::naive::NaiveCounter;
use super::*;

#[path = "../../../tests/support/counters.rs"]
#[expect(dead_code, reason = "the simulation uses more of it")]
mod naive;

/// The time, value and start of a reading.
type SentReading = (i64, f64, i64);

const SECOND: i64 = 1000;

/// Returns the cell of each time.
fn cells(readings: &[SentReading]) -> BTreeMap<i64, Cell> {
    let mut state = SeriesState::new(Kind::Counter);
    let mut cells: BTreeMap<i64, Cell> = BTreeMap::new();
    for (at, value, start) in readings {
        let observed = state.observe(UnixMillis(*at), *value, *start, UnixMillis(*at));
        cells.entry(*at).or_default().merge(&observed.cell);
        if let Some(Correction { at, increase, rate }) = observed.correction {
            cells.entry(at.0).or_default().merge(&Cell::correction(increase, rate));
        }
    }
    cells
}

fn increases(readings: &[SentReading]) -> BTreeMap<i64, f64> {
    cells(readings).into_iter().map(|(at, cell)| (at, cell.sum)).collect()
}

fn values(readings: &[SentReading]) -> Vec<f64> {
    increases(readings).into_values().collect()
}

fn total(readings: &[SentReading]) -> f64 {
    values(readings).iter().sum()
}

/// Returns the readings, the first of which does not count whole.
fn first_without_count(readings: &[SentReading]) -> Vec<SentReading> {
    let mut readings = readings.to_vec();
    if let Some((at, _, start)) = readings.first_mut() {
        *start = start_without_count(*at, *start);
    }
    readings
}

/// Checks the cells against the naive model, including the smallest and largest rates, whether the
/// first reading counts whole or not.
fn check(readings: &[SentReading]) {
    check_from(readings, readings, i64::MIN);
    check_from(readings, &first_without_count(readings), i64::MAX);
}

fn check_from(readings: &[SentReading], marked: &[SentReading], counts_from: i64) {
    let mut model = NaiveCounter::default();
    for (at, value, start) in readings {
        model.add_reading(*at, *value, *start, counts_from);
    }
    let cells = cells(marked);
    let sums: BTreeMap<_, _> = cells.iter().map(|(at, cell)| (*at, cell.sum)).collect();
    assert_eq!(sums, model.increases(), "{readings:?}");
    for (at, cell) in cells {
        let rates = || model.rates().iter().filter(|(time, _)| *time == at).map(|(_, rate)| *rate);
        let extremes =
            (rates().fold(f64::INFINITY, f64::min), rates().fold(f64::NEG_INFINITY, f64::max));
        assert_eq!((cell.min, cell.max), extremes, "at {at}: {readings:?}");
    }
}

/// Moves late readings without a guarantee behind all others.
fn promised(mut readings: Vec<SentReading>) -> Vec<SentReading> {
    let mut model = NaiveCounter::default();
    for (at, value, start) in &mut readings {
        if let Some(newest) = model.latest_time().filter(|_| !model.is_guaranteed(*at)) {
            *at = newest + 15 * SECOND;
        }
        model.add_reading(*at, *value, *start, i64::MIN);
    }
    readings
}

#[test]
fn a_decrease_is_a_reset_and_never_a_wrap() {
    let got = values(&[(1000, 4_294_967_290.0, 0), (2000, 10.0, 0), (3000, 12.0, 0)]);
    assert_eq!(got, [0.0, 10.0, 2.0]);
}

#[test]
fn a_later_start_is_a_reset_even_when_the_value_grew() {
    let boot = -100 * 24 * 3600 * SECOND;
    assert_eq!(values(&[(1000, 5.0, boot), (2000, 9.0, 1500)]), [0.0, 9.0]);
    assert_eq!(values(&[(1000, 5.0, boot), (2000, 9.0, boot)]), [0.0, 4.0]);
}

#[test]
fn a_start_at_the_previous_reading_is_a_reset_unless_that_reading_had_no_start() {
    // Upstream's start_timestamps.test: cumulative{type="st_resets"}, a reading a minute.
    let minute = 60 * SECOND;
    let start = [90, 90, 90, 240, 240, 240].map(|seconds| seconds * SECOND);
    let resets: Vec<SentReading> = (0..)
        .zip(start)
        .map(|(index, start)| ((index + 2) * minute, (index * 60) as f64, start))
        .collect();
    assert_eq!(values(&resets), [0.0, 60.0, 60.0, 180.0, 60.0, 60.0]);
    // Points whose start was unknown at first.
    let (two, three) = (2 * minute, 3 * minute);
    assert_eq!(values(&[(two, 1.0, 0), (three, 1.0, two)]), [0.0, 0.0]);
    assert_eq!(values(&[(two, 1.0, two), (three, 1.0, two)]), [0.0, 0.0]);
    assert_eq!(values(&[(two, 1.0, minute), (three, 1.0, two)]), [1.0, 1.0]);
    assert_eq!(values(&[(two, 1.0, three), (three, 1.0, two)]), [0.0, 0.0]);
}

#[test]
fn a_start_after_its_reading_is_ignored() {
    let wrong: Vec<SentReading> = (1..6).map(|at| (at * SECOND, at as f64, 90 * SECOND)).collect();
    assert_eq!(values(&wrong), [0.0, 1.0, 1.0, 1.0, 1.0]);
}

#[test]
fn the_count_since_a_start_near_the_first_reading_is_kept() {
    let readings = [(20_000, 5.0, 15_000), (30_000, 7.0, 15_000)];
    assert_eq!(values(&readings), [5.0, 2.0]);
    assert_eq!(cells(&readings)[&20_000].max, 1.0);
    let boot = 20_000 - START_COUNTS_MS;
    assert_eq!(values(&[(20_000, 5.0, boot)]), [5.0]);
    assert_eq!(values(&[(20_000, 5.0, boot - 1)]), [0.0]);
    // An earlier reading that arrives late takes its part.
    assert_eq!(values(&[readings[1], readings[0]]), [5.0, 2.0]);
    assert_eq!(values(&[readings[0], (10_000, 3.0, 0)]), [0.0, 5.0]);
}

#[test]
fn a_reading_before_the_first_one_counts_like_a_first_one() {
    let first = |start| {
        let mut state = SeriesState::new(Kind::Counter);
        let at = |at| UnixMillis(at * SECOND);
        let first = state.observe(at(1000), 2080.0, start, at(1000)).cell;
        let next = state.observe(at(1010), 2100.0, 900 * SECOND, at(1010)).cell;
        let late = state.observe(at(990), 2060.0, 900 * SECOND, at(990));
        let corrected = first.sum + late.correction.unwrap().increase;
        [first.sum, next.sum, late.cell.sum, corrected]
    };
    assert_eq!(first(900 * SECOND), [2080.0, 20.0, 2060.0, 20.0]);
    assert_eq!(first(999 * SECOND - START_COUNTS_MS), [0.0, 20.0, 0.0, 20.0]);
}

#[test]
fn a_counter_continues_when_the_clock_of_its_sender_is_set_back() {
    let boot = SECOND;
    // A reading every 10 s that grows by 20; then the clock, and with it the boot time, is set back
    // by 300 s.
    let before = (1..120).map(|round| (boot + round * 10 * SECOND, (round * 20) as f64, boot));
    let by = 300 * SECOND;
    let after = (120..200)
        .map(|round| (boot + round * 10 * SECOND - by, (round * 20) as f64, boot - by))
        .collect::<Vec<_>>();
    let readings: Vec<SentReading> = before.chain(after.iter().copied()).collect();
    check(&readings);
    assert!(values(&readings).iter().all(|increase| *increase <= 40.0));
    assert_eq!(total(&readings), 199.0 * 20.0);
    // One contradicting reading does not change the readings around it.
    let one = [(1000, 5.0, 1), (3000, 9.0, 1), (5000, 20.0, 1), (2000, 12.0, 1)];
    assert_eq!(values(&one), [5.0, 0.0, 4.0, 11.0]);
    check(&one);
}

#[test]
fn a_late_reading_from_before_a_restart_is_no_clock_that_was_set_back() {
    // The counter restarted at 90 s; its sender took another reading at 95 s, so the first reading
    // of the series does not count whole.
    let restarted = (100 * SECOND, 50.0, 90 * SECOND);
    for start_before in [0, SECOND] {
        let before = (80 * SECOND, 1e6, start_before);
        let late = first_without_count(&[restarted, before]);
        assert_eq!(values(&late), [0.0, 50.0]);
        assert_eq!(total(&first_without_count(&[before, restarted])), 50.0);
    }
    // A counter that began before both readings continues when the clock was set back.
    let set_back = (80 * SECOND, 60.0, 70 * SECOND);
    assert_eq!(total(&first_without_count(&[(100 * SECOND, 50.0, 70 * SECOND), set_back])), 10.0);
    // A late reading from after a restart, which does not count whole either, shows the restart.
    let readings = [(60, 1000.0, 0), (80, 30.0, 70), (100, 50.0, 0)];
    let [first, second, third] = readings.map(|(at, v, start)| (at * SECOND, v, start * SECOND));
    assert_eq!(values(&[third, second, first]), [0.0, 30.0, 20.0]);
}

#[test]
fn a_start_of_former_records_that_does_not_count_means_what_it_meant() {
    let former = |at: i64| at - START_COUNTS_MS - 1;
    let first = (100 * SECOND, 50.0, former(100 * SECOND));
    assert_eq!(values(&[first, (110 * SECOND, 57.0, 90 * SECOND)]), [0.0, 7.0]);
    assert_eq!(values(&[first, (80 * SECOND, 60.0, 0)]), [10.0, 0.0]);
}

#[test]
fn a_late_reading_takes_its_part_from_the_reading_after_it() {
    let late = [(1000, 0.0, 0), (3000, 10.0, 0), (2000, 4.0, 0), (4000, 11.0, 0)];
    assert_eq!(values(&late), [0.0, 4.0, 6.0, 1.0]);
    // The very first reading may arrive late.
    assert_eq!(values(&[(2000, 7.0, 0), (1000, 5.0, 0)]), [0.0, 2.0]);
    // A late reading may show a hidden reset.
    assert_eq!(values(&[(1000, 5.0, 0), (3000, 6.0, 0), (2000, 1.0, 0)]), [0.0, 1.0, 5.0]);
    let hidden = [(0, 10.0, 0), (2000, 20.0, 0), (5000, 25.0, 0), (3000, 3.0, 0)];
    assert_eq!(total(&hidden), 35.0);
}

#[test]
fn the_larger_of_two_readings_at_one_time_counts() {
    let first = (1000, 1.0, 0);
    for order in [[(2000, 5.0, 0), (2000, 7.0, 0)], [(2000, 7.0, 0), (2000, 5.0, 0)]] {
        assert_eq!(values(&[first, order[0], order[1]]), [0.0, 6.0]);
        assert_eq!(values(&[order[0], order[1], first, (3000, 9.0, 0)]), [0.0, 6.0, 2.0]);
    }
}

#[test]
fn one_long_gap_does_not_hide_the_backlog_behind_it() {
    let reading = |at: i64| (at * SECOND, (at * 2) as f64, 0);
    let mut readings: Vec<SentReading> = [15, 30, 45, 3645].map(reading).to_vec();
    // Live readings continue while the backlog arrives.
    for index in 0..239 {
        readings.push(reading(60 + index * 15));
        readings.push(reading(3660 + index * 15));
    }
    check(&readings);
    assert!(increases(&readings)[&(3645 * SECOND)] == 30.0);
}

#[test]
fn history_may_arrive_after_live_readings() {
    let reading = |at: i64| (at * 15 * SECOND, at as f64, 0);
    let live = (500..600).map(reading);
    let history = (0..500).map(reading);
    let readings: Vec<SentReading> = live.chain(history).collect();
    check(&readings);
}

#[test]
fn a_gap_is_remembered_through_small_ones_after_it() {
    let mut late = Vec::new();
    let mut readings: Vec<SentReading> = Vec::new();
    for index in (0..20).chain(260..600) {
        let reading = (index * 15 * SECOND, index as f64, 0);
        // An occasional reading is missing.
        if index < 300 || index % 40 != 0 {
            readings.push(reading);
        }
    }
    late.extend((20..260).map(|index| (index * 15 * SECOND, index as f64, 0)));
    readings.extend(late);
    let got = increases(&readings);
    assert!((20..=260).all(|index| got[&(index * 15 * SECOND)] == 1.0), "{got:?}");
    assert_eq!(got.values().sum::<f64>(), 599.0);
}

#[test]
fn rates_are_per_second_between_neighbours() {
    let cells = cells(&[(0, 5.0, 0), (2000, 9.0, 0), (8000, 15.0, 0), (6000, 10.0, 0)]);
    let rates: Vec<_> = cells.values().map(|cell| (cell.min, cell.max)).collect();
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    // The last slot has the rate over the gap, and the rate of its remainder.
    assert_eq!(rates, [none, (2.0, 2.0), (0.25, 0.25), (1.0, 2.5)]);
}

#[test]
fn a_series_ends_until_a_later_sample() {
    let mut state = SeriesState::new(Kind::Gauge);
    state.end(UnixMillis(100));
    state.observe(UnixMillis(1000), 1.0, 0, UnixMillis(0));
    state.end(UnixMillis(500));
    assert_eq!(state.ended_at(), None);
    state.end(UnixMillis(2000));
    assert_eq!(state.ended_at(), Some(UnixMillis(2000)));
    // A late sample from before the end.
    state.observe(UnixMillis(1500), 1.0, 0, UnixMillis(0));
    state.observe(UnixMillis(2000), 1.0, 0, UnixMillis(0));
    assert_eq!((state.ended_at(), state.last_at), (Some(UnixMillis(2000)), UnixMillis(2000)));
    state.observe(UnixMillis(2001), 1.0, 0, UnixMillis(0));
    assert_eq!(state.ended_at(), None);
}

/// Returns readings with resets, starts and equal times, as steps from the latest one.
fn sent(steps: Vec<(i64, u32, i64)>) -> Vec<SentReading> {
    let mut newest = 100 * SECOND;
    let readings = steps.into_iter().map(|(step, value, age)| {
        let at = newest + step * SECOND;
        newest = newest.max(at);
        // Some starts are unknown, some wrong, some at an earlier reading.
        (at, f64::from(value), if age > 30 { 0 } else { at - age * SECOND })
    });
    readings.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn few_readings_are_corrected_in_any_order(
        steps in prop::collection::vec((-9..9_i64, 0..20_u32, -2..60_i64), 1..10)
    ) {
        check(&sent(steps));
    }

    #[test]
    fn late_readings_among_the_latest_are_corrected(
        steps in prop::collection::vec((-20..30_i64, 0..20_u32, -2..60_i64), 1..80)
    ) {
        check(&promised(sent(steps)));
    }

    #[test]
    fn the_guarantees_hold_across_long_gaps_and_jitter(
        steps in prop::collection::vec(
            (prop_oneof![8 => 13..17_i64, 2 => -40..0_i64, 1 => 20..90_000_i64], 0..20_u32, -2..60_i64),
            1..80,
        )
    ) {
        check(&promised(sent(steps)));
    }

    #[test]
    fn blocks_that_overtake_each_other_give_every_slot_its_increase(
        // Gaps are recognized once the interval is known; a block of one reading may hide a
        // preceding gap.
        blocks in prop::collection::vec(prop::collection::vec(0..50_u32, 3..20), 1..6),
        swap: bool,
    ) {
        let mut times = (0..).map(|index| index * SECOND);
        let block = |values: &Vec<u32>| -> Vec<SentReading> {
            values.iter().zip(&mut times).map(|(value, at)| (at, f64::from(*value), 0)).collect()
        };
        let mut blocks: Vec<_> = blocks.iter().map(block).collect();
        // Two queues: every second block arrives before the one that it follows.
        if swap {
            blocks.chunks_exact_mut(2).for_each(<[_]>::reverse);
        }
        check(&blocks.concat());
    }

    #[test]
    fn restarts_with_known_starts_give_the_same_total_in_every_order(
        steps in prop::collection::vec((1..9_i64, any::<bool>(), 0..20_u32), 1..=READINGS_MAX),
        has_starts: bool,
        seed: u64,
    ) {
        let (mut at, mut value, mut start) = (1000 * SECOND, 0.0, 900 * SECOND);
        let mut in_order = Vec::new();
        for (passed, restarts, grown) in steps {
            if restarts {
                (start, value) = (at + passed * SECOND / 2, 0.0);
            }
            at += passed * SECOND;
            value += f64::from(grown);
            in_order.push((at, value, if has_starts { start } else { 0 }));
        }
        let mut shuffled = in_order.clone();
        fastrand::Rng::with_seed(seed).shuffle(&mut shuffled);
        let without_count = |readings: &[SentReading]| total(&first_without_count(readings));
        prop_assert_eq!(without_count(&shuffled), without_count(&in_order));
        prop_assert!(total(&shuffled) <= total(&in_order));
    }

    #[test]
    fn the_total_is_exact_in_every_order_while_nothing_is_reset(
        steps in prop::collection::vec((0..9_u32, 1..5_i64), 1..40), seed: u64
    ) {
        let (mut at, mut value) = (0, 0.0);
        let mut readings = Vec::new();
        for (grown, passed) in steps {
            at += passed * 1000;
            value += f64::from(grown);
            readings.push((at, value, 0));
        }
        let counted = value - readings[0].1;
        fastrand::Rng::with_seed(seed).shuffle(&mut readings);
        prop_assert_eq!(total(&readings), counted);
    }
}
