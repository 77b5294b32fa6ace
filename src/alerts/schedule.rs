//! The schedule of evaluations: at multiples of a group's interval, and never for the past.
//!
//! Must never know: the clock, who evaluates.

use crate::model::UnixMillis;

/// The longest time for which rules wait for a clock that was set back, unless their interval is
/// longer.
const WAIT_MAX_MS: i64 = 120_000;

/// A due evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueEvaluation {
    /// The time of the evaluation.
    pub at: UnixMillis,
    /// The number of evaluations that were missed since the last one.
    pub missed: u64,
}

/// Returns the evaluation that is due now, given the time of the last one; `None` until the next
/// interval begins. After the clock was set back, nothing is due until the clock passes the last
/// evaluation: slots before that time already contain later samples. A last evaluation that is
/// further ahead than two minutes (or an interval) was made under a wrong clock and is ignored.
pub fn due(interval_ms: i64, last: Option<UnixMillis>, now: UnixMillis) -> Option<DueEvaluation> {
    let at = now.0 - now.0.rem_euclid(interval_ms);
    let last = last.filter(|last| last.0 <= at.saturating_add(wait_max_ms(interval_ms)));
    let Some(last) = last else { return Some(DueEvaluation { at: UnixMillis(at), missed: 0 }) };
    // The last evaluation may have had another interval.
    let slots = at.div_euclid(interval_ms) - last.0.div_euclid(interval_ms);
    (at > last.0).then(|| DueEvaluation {
        at: UnixMillis(at),
        missed: slots.saturating_sub(1).max(0).unsigned_abs(),
    })
}

/// Returns the number of evaluations that a group skips because the clock was set back; 0 if it
/// does not wait.
pub fn skipped_evaluations(interval_ms: i64, last: Option<UnixMillis>, now: UnixMillis) -> u64 {
    let is_waiting = due(interval_ms, last, now).is_none();
    let behind_ms = last.filter(|_| is_waiting).map_or(0, |last| last.since(now));
    behind_ms.max(0).div_euclid(interval_ms).unsigned_abs()
}

fn wait_max_ms(interval_ms: i64) -> i64 {
    interval_ms.max(WAIT_MAX_MS)
}

/// Returns the next time at which a group is due, after a time.
pub fn next_evaluation(interval_ms: i64, now: UnixMillis) -> UnixMillis {
    UnixMillis((now.0 - now.0.rem_euclid(interval_ms)).saturating_add(interval_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluations_are_aligned_and_missed_ones_are_counted() {
        let check = |last: Option<i64>, now: i64, expected: Option<(i64, u64)>| {
            let found = due(15_000, last.map(UnixMillis), UnixMillis(now));
            assert_eq!(found.map(|due| (due.at.0, due.missed)), expected, "{last:?} {now}");
        };
        check(None, 61_000, Some((60_000, 0)));
        check(Some(60_000), 74_999, None);
        check(Some(60_000), 75_000, Some((75_000, 0)));
        check(Some(60_000), 121_000, Some((120_000, 3)));
        // The interval was different.
        check(Some(70_000), 75_000, Some((75_000, 0)));
        check(Some(70_000), 91_000, Some((90_000, 1)));
        // The clock was a little ahead, and a day ahead.
        check(Some(75_000), 61_000, None);
        check(Some(180_000), 61_000, None);
        check(Some(195_000), 61_000, Some((60_000, 0)));
        check(Some(86_400_000), 61_000, Some((60_000, 0)));
        assert_eq!(next_evaluation(15_000, UnixMillis(60_000)), UnixMillis(75_000));
        assert_eq!(next_evaluation(15_000, UnixMillis(74_999)), UnixMillis(75_000));
    }

    #[test]
    fn evaluations_that_wait_for_a_clock_that_was_set_back_are_counted() {
        let check = |last: i64, now: i64, expected: u64| {
            let last = Some(UnixMillis(last));
            assert_eq!(
                skipped_evaluations(15_000, last, UnixMillis(now)),
                expected,
                "{last:?} {now}"
            );
        };
        check(75_000, 75_000, 0);
        check(75_000, 74_999, 0);
        check(75_000, 60_000, 1);
        check(180_000, 70_000, 7);
        // Further back: rules do not wait.
        check(86_400_000, 61_000, 0);
        assert_eq!(skipped_evaluations(15_000, None, UnixMillis(61_000)), 0);
    }
}
