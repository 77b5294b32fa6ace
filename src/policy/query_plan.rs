//! The choice of the granularity that answers a query.
//!
//! Other granularities answer where the chosen granularity is incomplete; see `coverage.rs`.

use std::ops::Range;

use super::coverage::Coverage;
use crate::model::{GranularityIndex, GranularitySet, UnixMillis};

/// Returns the finest granularity that covers the range with at most `points` slots and is
/// complete; if none is complete, the finest that fits; if none fits, the coarsest.
pub fn granularity_for_points(
    coverage: &Coverage<'_>,
    range: &Range<UnixMillis>,
    points: usize,
) -> GranularityIndex {
    let span = range.end.0.saturating_sub(range.start.0);
    let granularities = coverage.granularities();
    let fitting = || {
        let all = granularities.indexed();
        all.filter(|(_, granularity)| span / granularity.width_ms <= points as i64)
            .map(|(index, _)| index)
    };
    let whole = fitting().find(|index| coverage.makes_whole(*index, range));
    whole.or_else(|| fitting().next()).unwrap_or(granularities.coarsest())
}

/// Returns the coarsest granularity with a slot boundary at each of these times; `None` when there
/// is none.
pub fn granularity_for_borders(
    granularities: &GranularitySet,
    borders: &[UnixMillis],
) -> Option<GranularityIndex> {
    let ends_at_all =
        |width_ms: i64| borders.iter().all(|border| border.0.rem_euclid(width_ms) == 0);
    granularities.coarsest_by_width(ends_at_all)
}

/// The detail that a function needs from the samples of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The count, the sum, the minimum and other aggregates.
    Aggregates,
    /// The sum of the values. A counter's cell contains increases, so its values are needed one by
    /// one.
    Values,
    /// Many readings, spread over the window.
    Readings,
    /// The means of many time steps; a single window does not need finer ones either.
    Means,
    /// Every single sample.
    Samples,
}

/// The time windows that a selector of an expression reads; their ends are evenly spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// End of the first window, inclusive.
    pub first: UnixMillis,
    /// Milliseconds from one window's end to the next.
    pub step_ms: i64,
    /// The number of windows.
    pub count: usize,
    /// Length of a window in milliseconds; 0 when only the newest reading before its end is needed.
    pub range_ms: i64,
    /// The maximum age of that reading at the window's end, in milliseconds, when `range_ms` is 0.
    pub lookback_ms: i64,
    /// The detail that is needed from each window.
    pub detail: Detail,
}

/// The minimum length of a window, in slots, when its edges cut slots: the error of each of the two
/// cut slots is then at most a sixtieth of the window.
pub const CUT_SLOTS_MIN: i64 = 60;

impl Windows {
    /// Returns the end of the last window.
    pub fn last(&self) -> UnixMillis {
        self.first.plus(self.step_ms.saturating_mul(self.count.saturating_sub(1) as i64))
    }

    /// Returns the time range that all windows read, end exclusive.
    pub fn span(&self) -> Range<UnixMillis> {
        let back = if self.range_ms > 0 { self.range_ms } else { self.lookback_ms };
        self.first.minus(back)..self.last().plus(1)
    }

    /// Returns true when all edges of the windows are slot boundaries of this width.
    pub fn have_edges_on(&self, width_ms: i64) -> bool {
        self.ends_on(width_ms) && self.range_ms.rem_euclid(width_ms) == 0
    }

    fn ends_on(&self, width_ms: i64) -> bool {
        let whole = |length: i64| length.rem_euclid(width_ms) == 0;
        whole(self.first.0) && (self.count < 2 || whole(self.step_ms))
    }

    /// Returns true when slots of this width answer as well as finer ones.
    fn served_by(&self, width_ms: i64) -> bool {
        if self.range_ms > 0 {
            let many = width_ms <= self.range_ms / CUT_SLOTS_MIN;
            match self.detail {
                Detail::Aggregates | Detail::Values => many || self.have_edges_on(width_ms),
                Detail::Readings | Detail::Means => many,
                Detail::Samples => false,
            }
        } else {
            // At a slot boundary, the newest reading is the last one of the previous slot.
            let many = width_ms <= self.step_ms / CUT_SLOTS_MIN;
            width_ms <= self.step_ms && (many || self.ends_on(width_ms))
        }
    }
}

/// Returns the granularity that answers the windows: for several windows, the coarsest that answers
/// as well as finer ones; for a single window, the finest that has all its samples, unless means
/// are sufficient.
pub fn granularity_for_windows(
    coverage: &Coverage<'_>,
    windows: &Windows,
    now: UnixMillis,
) -> GranularityIndex {
    let granularities = coverage.granularities();
    if windows.count < 2 && windows.detail != Detail::Means {
        let span = windows.span();
        let kept = || granularities.finest_keeping(span.start, now);
        return coverage.finest_whole(&span).or_else(kept).unwrap_or(granularities.coarsest());
    }
    let serving = granularities.coarsest_by_width(|width_ms| windows.served_by(width_ms));
    serving.unwrap_or(GranularityIndex::FINEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Gaps;
    use crate::test_times::NOW;

    fn coverage(set: &GranularitySet, now: UnixMillis) -> Coverage<'_> {
        Coverage::new(set, vec![Gaps::NONE; set.count()], now)
    }

    #[test]
    fn windows_choose_the_coarsest_granularity_that_answers_as_well() {
        const MINUTE: i64 = 60_000;
        const HOUR: i64 = 60 * MINUTE;
        const DAY: i64 = 24 * HOUR;
        let set = GranularitySet::default();
        let now = UnixMillis(1_800_000_000_000 / DAY * DAY);
        let with = |detail: Detail, range_ms: i64, step_ms: i64, count: usize, shift: i64| {
            let first = now.minus(step_ms * (count as i64 - 1) + shift);
            let lookback_ms = 5 * MINUTE;
            let windows = Windows { first, step_ms, count, range_ms, lookback_ms, detail };
            set[granularity_for_windows(&coverage(&set, now), &windows, now)].name.clone()
        };
        let check = |range, step, count, shift| with(Detail::Aggregates, range, step, count, shift);
        // Slots contain neither single readings nor samples.
        assert_eq!(with(Detail::Readings, HOUR, HOUR, 48, 0), "1m");
        assert_eq!(with(Detail::Readings, DAY, DAY, 30, 0), "5m");
        assert_eq!(with(Detail::Samples, DAY, DAY, 30, 0), "1m");
        for (range, step, count, shift, expected) in [
            // avg_over_time(x[1h]) each hour of 30 days, on the hour and off it.
            (HOUR, HOUR, 720, 0, "1h"),
            (HOUR, HOUR, 720, 7 * MINUTE, "1m"),
            (DAY, HOUR, 720, 0, "1h"),
            (DAY, HOUR, 720, 7 * MINUTE, "5m"),
            // rate(x[5m]) each minute, and each five minutes.
            (5 * MINUTE, MINUTE, 60, 0, "1m"),
            (5 * MINUTE, 5 * MINUTE, 288, 0, "5m"),
            (5 * MINUTE, 5 * MINUTE, 288, 1, "1m"),
            (90_000, 15_000, 60, 0, "1m"),
            // Plain selectors.
            (0, 5 * MINUTE, 288, 0, "5m"),
            (0, 5 * MINUTE, 288, 1000, "1m"),
            (0, DAY, 30, 0, "1d"),
            (0, DAY, 30, 1000, "5m"),
            (0, 15_000, 60, 0, "1m"),
            // Instant queries: the finest granularity that keeps the window.
            (HOUR, 1, 1, 0, "1m"),
            (7 * DAY, 1, 1, 0, "5m"),
            (30 * DAY, 1, 1, 0, "1h"),
            (0, 1, 1, 0, "1m"),
        ] {
            let found = check(range, step, count, shift);
            assert_eq!(found, expected, "[{range}] step {step} x {count} shift {shift}");
        }
    }

    #[test]
    fn points_choose_the_granularity() {
        let set = GranularitySet::default();
        let chosen = |hours: i64| {
            let range = NOW.minus(hours * 3_600_000)..NOW;
            set[granularity_for_points(&coverage(&set, NOW), &range, 1500)].name.clone()
        };
        let hours = [1, 24, 48, 24 * 30, 24 * 365];
        assert_eq!(hours.map(chosen), ["1m", "1m", "5m", "1h", "1d"]);
    }

    #[test]
    fn a_granularity_that_no_longer_keeps_the_range_is_skipped() {
        let set = GranularitySet::default();
        let chosen = |days_ago: i64| {
            let start = NOW.minus(days_ago * 86_400_000);
            let range = start..start.plus(3_600_000);
            set[granularity_for_points(&coverage(&set, NOW), &range, 1500)].name.clone()
        };
        assert_eq!([1, 5, 30, 300].map(chosen), ["1m", "5m", "1h", "1d"]);
        assert_eq!(chosen(3000), "1m", "no granularity keeps the range: the finest that fits");
    }

    #[test]
    fn boundaries_choose_the_coarsest_granularity_that_has_them() {
        let set = GranularitySet::default();
        let chosen = |minutes: &[i64]| {
            let borders: Vec<_> = minutes.iter().map(|at| UnixMillis(at * 60_000)).collect();
            granularity_for_borders(&set, &borders).map(|index| &*set[index].name)
        };
        assert_eq!(chosen(&[0, 1440]), Some("1d"));
        assert_eq!(chosen(&[-60, 1380]), Some("1h"));
        assert_eq!(chosen(&[-330, 1110]), Some("5m"));
        assert_eq!(chosen(&[-333, 1440]), Some("1m"));
        assert_eq!(granularity_for_borders(&set, &[UnixMillis(30_000)]), None);
    }
}
