//! Preallocation: the number of shells that are due.
//!
//! The shells of the next document period are created over the second half of the current one, for
//! a growing share of the series, so that the work is spread evenly and everything is ready when
//! the period begins.

use crate::model::{Granularity, Moment, UnixMillis};

/// Shells of one granularity that must exist by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShellsDue {
    /// Start of the next document period.
    pub document: UnixMillis,
    /// The number of live series that must have a shell in it.
    pub count: usize,
}

/// Returns the time since which a series must have been seen to be live: within the last two
/// document spans.
pub fn live_since(granularity: &Granularity, now: UnixMillis) -> UnixMillis {
    let current = granularity.document_start(now);
    granularity.document_start(current.minus(1))
}

/// Returns the shells that must exist at `now`; `None` in the first half of a period, and while the
/// clock is doubted.
pub fn shells_due(
    granularity: &Granularity,
    series: usize,
    now: impl Into<Moment>,
) -> Option<ShellsDue> {
    let now = Some(now.into()).filter(|now| !now.is_doubted())?.clock;
    let current = granularity.document_start(now);
    let document = granularity.document.next(current);
    let half = (document.0 - current.0) / 2;
    let passed = now.0 - current.0 - half;
    // All shells exist a tenth of the period before the next one begins.
    let share = passed as f64 / (half as f64 * 0.8);
    let count = (series as f64 * share.min(1.0)).ceil() as usize;
    (passed >= 0).then_some(ShellsDue { document, count })
}

/// Returns the number of series that get a shell within the budget, besides the shells of other
/// granularities.
pub fn affordable(series: usize, shell_bytes: u64, other_bytes: u64, bytes_max: u64) -> usize {
    let count = bytes_max.saturating_sub(other_bytes) / shell_bytes.max(1);
    usize::try_from(count).unwrap_or(usize::MAX).min(series)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GranularitySet;

    #[test]
    fn shells_stay_within_their_budget() {
        assert_eq!(affordable(1000, 3297, 0, 1 << 30), 1000);
        assert_eq!(affordable(1000, 3297, 0, 3297 * 400), 400);
        assert_eq!(affordable(1000, 3297, 3297 * 399 + 1, 3297 * 400), 0);
        assert_eq!(affordable(1000, 3297, 9, 8), 0);
    }

    #[test]
    fn shells_are_spread_over_the_second_half_of_the_period() {
        let set = GranularitySet::default();
        let minute = &set.as_slice()[0];
        let hour = UnixMillis(1_763_683_200_000);
        let due = |minutes: i64| {
            shells_due(minute, 1000, hour.plus(minutes * 60_000)).map(|due| due.count)
        };
        assert_eq!([due(0), due(29)], [None, None]);
        assert_eq!(
            [due(30), due(42), due(54), due(59)],
            [Some(0), Some(500), Some(1000), Some(1000)]
        );
        let at = hour.plus(30 * 60_000);
        assert_eq!(shells_due(minute, 1, at).unwrap().document, hour.plus(3_600_000));
        assert_eq!(live_since(minute, at), hour.minus(3_600_000));
        assert_eq!(shells_due(minute, 1, Moment { clock: at, believed: hour }), None);
    }
}
