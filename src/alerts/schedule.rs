//! When groups are evaluated: at multiples of their interval, and never for the past.
//!
//! Must never know: the clock, who evaluates.

use crate::model::UnixMillis;

/// An evaluation that is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Its time.
    pub at: UnixMillis,
    /// Evaluations between the last one and this one that nobody made.
    pub missed: u64,
}

/// The evaluation that is due now, given when the last one was; `None` while its time lasts. A last
/// one further ahead than an interval was made by a clock that was wrong: it counts for nothing.
pub fn due(interval_ms: i64, last: Option<UnixMillis>, now: UnixMillis) -> Option<Due> {
    let at = now.0 - now.0.rem_euclid(interval_ms);
    let last = last.filter(|last| last.0 <= at.saturating_add(interval_ms));
    let Some(last) = last else { return Some(Due { at: UnixMillis(at), missed: 0 }) };
    // The interval may have been another one then.
    let slots = at.div_euclid(interval_ms) - last.0.div_euclid(interval_ms);
    (at > last.0)
        .then(|| Due { at: UnixMillis(at), missed: slots.saturating_sub(1).max(0).unsigned_abs() })
}

/// The next time at which a group is due, after a time.
pub fn next_after(interval_ms: i64, now: UnixMillis) -> UnixMillis {
    UnixMillis((now.0 - now.0.rem_euclid(interval_ms)).saturating_add(interval_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluations_are_aligned_and_what_lies_between_is_counted() {
        let check = |last: Option<i64>, now: i64, expected: Option<(i64, u64)>| {
            let found = due(15_000, last.map(UnixMillis), UnixMillis(now));
            assert_eq!(found.map(|due| (due.at.0, due.missed)), expected, "{last:?} {now}");
        };
        check(None, 61_000, Some((60_000, 0)));
        check(Some(60_000), 74_999, None);
        check(Some(60_000), 75_000, Some((75_000, 0)));
        check(Some(60_000), 121_000, Some((120_000, 3)));
        // The interval was another one.
        check(Some(70_000), 75_000, Some((75_000, 0)));
        check(Some(70_000), 91_000, Some((90_000, 1)));
        // The clock was a little ahead, and a day ahead.
        check(Some(75_000), 61_000, None);
        check(Some(86_400_000), 61_000, Some((60_000, 0)));
        assert_eq!(next_after(15_000, UnixMillis(60_000)), UnixMillis(75_000));
        assert_eq!(next_after(15_000, UnixMillis(74_999)), UnixMillis(75_000));
    }
}
