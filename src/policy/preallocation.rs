//! Which shells are due.
//!
//! Shells of the coming document period are made over the second half of the current one, a
//! growing share of the series at a time, so that the hour's turn finds everything ready and no
//! moment has to make it all.

use crate::model::{Granularity, Moment, UnixMillis};

/// Shells of one granularity that should exist by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShellsDue {
    /// Start of the coming document period.
    pub document: UnixMillis,
    /// How many of `series` live series should have a shell there.
    pub count: usize,
}

/// Series seen since this time are live: within the last two document spans.
pub fn live_since(granularity: &Granularity, now: UnixMillis) -> UnixMillis {
    let current = granularity.document_start(now);
    granularity.document_start(current.minus(1))
}

/// What should be there at `now`; `None` in the first half of a period, and while the time is
/// doubted.
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
    // All are there a tenth of the period before its turn.
    let share = passed as f64 / (half as f64 * 0.8);
    let count = (series as f64 * share.min(1.0)).ceil() as usize;
    (passed >= 0).then_some(ShellsDue { document, count })
}

/// How many of `series` get a shell of so many bytes, beside other shells that lie ahead.
pub fn affordable(series: usize, shell_bytes: u64, other_bytes: u64, bytes_max: u64) -> usize {
    let count = bytes_max.saturating_sub(other_bytes) / shell_bytes.max(1);
    usize::try_from(count).unwrap_or(usize::MAX).min(series)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GranularitySet;

    #[test]
    fn shells_take_no_more_than_their_budget() {
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
