//! The increase in a window: `increase` and `rate`.
//!
//! A window of whole slots adds up the increases that were stored at ingest; the growth of a
//! counter in a gap is spread over the slots of the gap. A window that cuts slots follows
//! Prometheus' rule: the increase from the first reading inside to the last, extrapolated to the
//! window's edges. Must never know: the store, the tree.

use super::{extrapolation::SampledChange, window::seconds};
use crate::{
    model::{
        Kind, Reading,
        counter::spread::{Gap, spacing_ms},
    },
    query::promql::value::{
        cells::TimedCell,
        numbers::Sum,
        portion::Portion,
        windows::{Frame, Window},
    },
};

/// Returns the increase per second.
pub(super) fn rate(window: &Window<'_>) -> Option<f64> {
    increase(window).map(|sum| sum / seconds(window.range_ms()))
}

/// Returns the increase in a window.
pub(super) fn increase(window: &Window<'_>) -> Option<f64> {
    match window.kind.of_counts() {
        Kind::Delta if !window.has_readings() => None,
        Kind::Gauge => SampledChange::of_gauge(window, true)?.extrapolated(&window.frame),
        Kind::Delta => Some(total(window.portions().map(|portion| portion.sum()))),
        Kind::Counter if window.frame.cuts_slots => increase_in_cut_slots(window),
        Kind::Counter | Kind::Histogram | Kind::GaugeHistogram | Kind::DeltaHistogram => {
            increase_in_whole_slots(window)
        }
    }
}

/// Returns the increase of a counter in a window of whole slots: the stored increases, and the
/// window's share of gaps.
fn increase_in_whole_slots(window: &Window<'_>) -> Option<f64> {
    let (cells, Frame { from, to, .. }) = (window.cells(), window.frame);
    let (at_start, at_end) = (gap_before(window, window.lo), gap_before(window, window.hi));
    if cells.is_empty() {
        let gap = at_start.filter(|gap| gap.covers(from, to))?;
        return Some(gap.carried(to) - gap.carried(from));
    }
    // The first reading of a series does not imply an increase before that reading.
    if at_end.is_none() && cells.iter().all(|cell| cell.max == f64::NEG_INFINITY) {
        return None;
    }
    let sum = total(cells.iter().map(|cell| cell.sum));
    let carried = |gap: Option<Gap>, edge: i64| gap.map_or(0.0, |gap| gap.carried(edge));
    Some(sum + carried(at_end, to) - carried(at_start, from))
}

/// Returns the gap before a cell, if it is longer than the counter's usual spacing.
fn gap_before(window: &Window<'_>, index: usize) -> Option<Gap> {
    let (all, finest_ms) = (window.all, window.frame.finest_ms);
    let (before, after) = (all.get(index.checked_sub(1)?)?, all.get(index)?);
    let passed = after.first_at - before.last_at;
    if passed <= finest_ms {
        return None;
    }
    let increase_between =
        |before: Option<&TimedCell>, after: Option<&TimedCell>| match (before, after) {
            (Some(before), Some(after)) => (after.first_at - before.last_at) as f64,
            _ => f64::INFINITY,
        };
    let spacing = [
        spacing_ms(before.n, before.first_at, before.last_at),
        spacing_ms(after.n, after.first_at, after.last_at),
        increase_between(index.checked_sub(2).map(|index| &all[index]), Some(before)),
        increase_between(Some(after), all.get(index + 1)),
    ];
    let spacing = spacing.into_iter().fold(f64::INFINITY, f64::min);
    if passed as f64 <= 1.5 * spacing {
        return None;
    }
    let before = Reading::new(before.last_at, before.last, 0);
    let counted = (after.sum, after.last);
    let after = Reading::new(after.first_at, after.first, 0);
    Gap::between(&before, &after, counted, spacing, finest_ms)
}

fn total(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut sum = Sum::default();
    numbers.for_each(|number| sum.add(number));
    sum.total()
}

/// Returns the increase of a counter in a window that cuts slots.
fn increase_in_cut_slots(window: &Window<'_>) -> Option<f64> {
    let mut portions = window.portions();
    let first = portions.next()?;
    let increase = |portion: &Portion<'_>| portion.increase_per_step() * f64::from(portion.steps());
    let (mut last, mut count, mut growth) = (first, first.count(), increase(&first));
    for portion in portions {
        growth += portion.increase_before().unwrap_or(0.0) + increase(&portion);
        count += portion.count();
        last = portion;
    }
    if count == 1 {
        return increase_around_one_reading(&first, &window.frame);
    }
    let (start, end) = (first.first(), last.last());
    // A counter cannot have been below zero.
    let floor = Some(start.value).filter(|value| *value >= 0.0 && growth > 0.0);
    SampledChange { from: start.at, to: end.at, count, growth, floor }.extrapolated(&window.frame)
}

/// Returns the increase of a counter in a window with one reading: the increase since the previous
/// reading, scaled to the window. Prometheus returns no value in this case.
fn increase_around_one_reading(portion: &Portion<'_>, frame: &Frame) -> Option<f64> {
    let (passed, counted) = portion.step_to_first()?;
    let at = portion.first().at;
    let to_end = frame.to as f64 - at;
    let to_end = if to_end >= 1.1 * passed { passed / 2.0 } else { to_end };
    (passed > 0.0).then(|| counted * (at + to_end - frame.from as f64) / passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::promql::value::{
        cells::{TimedCell, cells_of_readings},
        windows::Cursor,
    };

    /// Returns the increase in the window between two times in seconds.
    fn increase_in(cells: &[TimedCell], kind: Kind, from: i64, to: i64) -> Option<f64> {
        let frame = Frame::of_minutes(from * 1000, to * 1000);
        increase(&Cursor::default().window(cells, kind, frame))
    }

    /// Returns readings every `every` seconds, from `first` to before `end`.
    fn readings(first: i64, every: i64, end: i64, value: impl Fn(i64) -> i64) -> Vec<(i64, f64)> {
        (first..end).step_by(every as usize).map(|at| (at, value(at) as f64)).collect()
    }

    #[test]
    fn deleted_growth_appears_in_no_window() {
        let mut cells = cells_of_readings(Kind::Counter, readings(0, 10, 1200, |at| 1000 + at));
        // The minutes from 5 to 14 were deleted.
        cells.retain(|cell| !(300_000..900_000).contains(&cell.first_at));
        let within = |from: i64, to: i64| increase_in(&cells, Kind::Counter, from, to);
        assert_eq!(within(240, 300), Some(60.0));
        assert_eq!([within(300, 360), within(360, 900)], [None, None]);
        assert_eq!(within(900, 960), Some(60.0));
        assert_eq!(within(0, 1200), Some(590.0));
        // Windows that cut slots.
        for (from, to) in [(200, 1000), (270, 930), (890, 935)] {
            let found = within(from, to).unwrap_or(0.0);
            let kept = (300 - from).max(0) + (to - 900);
            assert!(found <= 1.1 * kept as f64 + 20.0, "{from} to {to}: {found}, kept {kept}");
        }
    }

    #[test]
    fn windows_that_cut_slots_follow_the_rule_of_prometheus() {
        let upto = |readings: &[(i64, f64)], end: i64| -> Vec<(i64, f64)> {
            readings.iter().copied().filter(|(at, _)| *at <= end).collect()
        };
        let steady = readings(2, 5, 400, |at| 1000 + at);
        let on_edges = readings(0, 5, 400, |at| 1000 + at);
        let bursty = readings(5, 10, 400, |at| 1000 + at.min(60) + 4 * (at - 60).max(0));
        let reset = readings(5, 10, 400, |at| if at < 85 { 1000 + 2 * at } else { 2 * (at - 80) });
        let sparse: Vec<_> = (0..5).map(|k| (75 * k + 10, (500 + 150 * k) as f64)).collect();
        let young = readings(100, 10, 400, |at| 3 * (at - 97));
        let ends = readings(5, 10, 200, |at| 1000 + at);
        let steps = readings(5, 10, 80, |at| if at < 35 { 100 } else { 160 });
        let live = true;
        for (readings, is_live, from, to, expected) in [
            (&steady, live, 110, 170, Some(60.0)),
            (&steady, live, 110, 200, Some(90.0)),
            (&steady, !live, 150, 170, Some(20.0)),
            (&on_edges, live, 120, 180, Some(60.0)),
            (&bursty, live, 30, 90, Some(150.0)),
            (&bursty, live, 30, 120, Some(275.625)),
            (&bursty, live, 70, 100, Some(120.0)),
            (&bursty, live, 72, 78, Some(24.0)),
            (&reset, !live, 40, 100, Some(112.8)),
            (&reset, !live, 100, 160, Some(117.6)),
            (&sparse, !live, 200, 260, Some(120.0)),
            (&sparse, !live, 240, 300, None),
            (&sparse, !live, 130, 280, Some(300.0)),
            (&young, live, 80, 170, Some(219.0)),
            (&ends, !live, 150, 240, Some(50.0)),
            (&ends, !live, 190, 250, Some(10.0)),
            (&steps, !live, 10, 40, Some(36.0)),
        ] {
            let readings = if is_live { upto(readings, to) } else { readings.clone() };
            let found = increase_in(
                &cells_of_readings(Kind::Counter, readings.iter().copied()),
                Kind::Counter,
                from,
                to,
            );
            let is_near = match (found, expected) {
                (Some(found), Some(expected)) => (found - expected).abs() < 1e-9 * expected,
                (found, expected) => found == expected,
            };
            assert!(is_near, "({from}, {to}] {found:?}, not {expected:?}");
        }
    }

    #[test]
    fn a_steady_counter_has_the_same_rate_in_every_window() {
        for every in [5, 10, 15, 30, 60] {
            let readings = readings(2, every, 1200, |at| 1000 + 2 * at);
            let cells = cells_of_readings(Kind::Counter, readings.iter().copied());
            for to in 600..720 {
                for range in [60, 90, 120, 300, 420].into_iter().filter(|range| *range > every) {
                    let found = increase_in(&cells, Kind::Counter, to - range, to);
                    let expected = (2 * range) as f64;
                    let found = found.unwrap();
                    assert!(
                        (found - expected).abs() < 1e-9 * expected,
                        "{every} {to} {range} {found}"
                    );
                }
            }
        }
    }

    #[test]
    fn growth_in_a_gap_is_spread_over_the_slots_of_the_gap() {
        let mut all = readings(5, 5, 60, |at| at);
        all.extend(readings(305, 5, 360, |at| at));
        let gapped = cells_of_readings(Kind::Counter, all.iter().copied());
        for minute in 1..6 {
            let found = increase_in(&gapped, Kind::Counter, minute * 60, minute * 60 + 60);
            assert_eq!(found, Some(60.0), "{minute}");
        }
        assert_eq!(increase_in(&gapped, Kind::Counter, 60, 360), Some(300.0));
        // Readings every five minutes leave no gap, and a reset is not spread.
        let regular = cells_of_readings(Kind::Counter, readings(10, 300, 3000, |at| at));
        assert_eq!(increase_in(&regular, Kind::Counter, 600, 660), Some(300.0));
        assert_eq!(increase_in(&regular, Kind::Counter, 660, 720), None);
        all.iter_mut().skip(11).for_each(|reading| reading.1 -= 300.0);
        let reset = cells_of_readings(Kind::Counter, all.iter().copied());
        assert_eq!(increase_in(&reset, Kind::Counter, 240, 300), None);
    }

    #[test]
    fn deltas_count_at_the_time_of_their_reading() {
        let cells = cells_of_readings(Kind::Delta, readings(5, 10, 300, |_| 4));
        assert_eq!(increase_in(&cells, Kind::Delta, 60, 120), Some(24.0));
        assert_eq!(increase_in(&cells, Kind::Delta, 72, 132), Some(24.0));
        assert_eq!(increase_in(&cells, Kind::Delta, 76, 104), Some(8.0));
    }
}
