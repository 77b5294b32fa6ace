//! The order in which one integration of a receiver gets the groups that it is owed, with back-off.
//!
//! While an integration is unreachable, its newest group is retried after ever longer waits. Another
//! group is tried right after a failure, which shows whether the receiver is unreachable or fails on
//! that one message. Therefore a message that always fails delays no other, and the newest group is
//! delivered first when the receiver is back. Must never know: groups, how anything is sent.

use std::collections::BTreeMap;

use crate::model::UnixMillis;

/// The maximum share of the wait by which a retry is earlier, so that retries spread.
const JITTER_PARTS: i64 = 4;

/// The delivery order and back-off of one integration.
#[derive(Debug, Default)]
pub(crate) struct Courier {
    is_busy: bool,
    /// The number of consecutive failures; a group and the one tried beside it count once.
    failures: u32,
    /// The earliest time of the next attempt.
    next_at: Option<UnixMillis>,
    /// The group that failed, until another one is tried beside it.
    alone: Option<String>,
    /// The group that failed before the current one.
    beside: Option<String>,
    /// The groups that failed since their last delivery.
    failed: BTreeMap<String, Failed>,
}

#[derive(Debug, Default)]
struct Failed {
    times: u32,
    next_at: Option<UnixMillis>,
}

/// The wait after a number of failures, in milliseconds: a receiver that is back gets its messages
/// within five seconds.
fn backoff_ms(failures: u32) -> i64 {
    const LEAST_MS: i64 = 1000;
    const MOST_MS: i64 = 4000;
    LEAST_MS.saturating_mul(1 << failures.min(10)).min(MOST_MS)
}

/// A clock that was set back does not make the wait longer.
fn waits(next_at: Option<UnixMillis>, now: UnixMillis) -> bool {
    next_at.is_some_and(|at| (1..=2 * backoff_ms(u32::MAX)).contains(&at.since(now)))
}

fn after(failures: u32, now: UnixMillis) -> UnixMillis {
    let wait_ms = backoff_ms(failures);
    now.plus(wait_ms - fastrand::i64(0..=wait_ms / JITTER_PARTS))
}

impl Courier {
    /// Chooses the next group: returns its index among the owed ones, of which the newest is first.
    /// The integration is busy until an answer.
    pub(crate) fn take(&mut self, owed: &[&str], now: UnixMillis) -> Option<usize> {
        if self.is_busy || owed.is_empty() {
            return None;
        }
        if self.failed.len() > owed.len() {
            self.failed.retain(|group, _| owed.contains(&group.as_str()));
        }
        let failed = |at: &usize| self.failed.get(*owed.get(*at)?);
        let is_other = |at: &usize| {
            self.alone.as_deref().is_some_and(|own| owed.get(*at).is_some_and(|it| *it != own))
        };
        let others = (0..owed.len()).filter(is_other);
        let other = others.min_by_key(|at| failed(at).map_or(0, |own| own.times));
        let found = match other {
            Some(_) => other,
            None if waits(self.next_at, now) => None,
            None if self.failures > 0 => Some(0),
            None => (0..owed.len()).find(|at| !waits(failed(at).and_then(|own| own.next_at), now)),
        };
        if other.is_some() {
            self.beside = self.alone.take();
        }
        self.is_busy = found.is_some();
        found
    }

    /// True during a delivery.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// True while the receiver is unreachable and the next attempt is not due.
    pub(crate) fn is_waiting(&self, now: UnixMillis) -> bool {
        self.alone.is_none() && waits(self.next_at, now)
    }

    /// Ends a delivery that turned out to be unnecessary.
    pub(crate) fn put_back(&mut self) {
        self.is_busy = false;
        self.alone = self.beside.take().or_else(|| self.alone.take());
    }

    /// Records that the receiver confirmed or refused a message: it is reachable. Returns whether
    /// it was unreachable before.
    pub(crate) fn answer(&mut self, group: &str) -> bool {
        self.is_busy = false;
        let was_away = self.failures > 0;
        let beside = self.beside.take();
        // Groups that failed because the receiver was unreachable do not wait any longer.
        if self.failures > u32::from(beside.is_some()) {
            self.failed.retain(|own, _| Some(own) == beside.as_ref());
        }
        self.failed.remove(group);
        (self.failures, self.next_at, self.alone) = (0, None, None);
        was_away
    }

    /// Records a failed delivery of a group. Returns whether the receiver was reachable before.
    pub(crate) fn fail(&mut self, group: &str, now: UnixMillis) -> bool {
        self.is_busy = false;
        let own = self.failed.entry(group.to_owned()).or_default();
        own.next_at = Some(after(own.times, now));
        own.times = own.times.saturating_add(1);
        if self.beside.take().is_some() {
            // Both groups failed, so the receiver is unreachable.
            self.next_at = Some(after(self.failures.saturating_sub(1), now));
            return false;
        }
        self.next_at = Some(after(self.failures, now));
        self.failures = self.failures.saturating_add(1);
        self.alone = Some(group.to_owned());
        self.failures == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the deliveries within this many seconds, each group once, to an integration that
    /// accepts what `takes` accepts.
    fn told(
        courier: &mut Courier,
        owed: &mut Vec<&'static str>,
        from: i64,
        seconds: i64,
        takes: impl Fn(&str) -> bool,
    ) -> Vec<&'static str> {
        let mut told = Vec::new();
        for second in from..from + seconds {
            let now = UnixMillis(second * 1000);
            while let Some(at) = courier.take(owed, now) {
                let group = owed[at];
                assert_eq!(courier.take(owed, now), None, "it has one at a time");
                if takes(group) {
                    courier.answer(group);
                    owed.retain(|own| *own != group);
                    told.push(group);
                } else {
                    courier.fail(group, now);
                }
            }
        }
        told
    }

    #[test]
    fn a_receiver_that_is_away_waits_longer_each_time_up_to_four_seconds() {
        assert_eq!([0, 1, 3, 30].map(backoff_ms), [1000, 2000, 4000, 4000]);
        let mut courier = Courier::default();
        let now = UnixMillis(10_000);
        for group in ["a", "b"] {
            assert!(!courier.is_waiting(now));
            assert!(courier.take(&["a", "b"], now).is_some());
            courier.fail(group, now);
        }
        assert!(courier.is_waiting(now));
        assert!(!courier.is_waiting(now.plus(backoff_ms(0))));
        // The clock was set back.
        assert!(!courier.is_waiting(now.minus(3_600_000)));
        courier.take(&["a", "b"], now.plus(1000)).unwrap();
        courier.answer("a");
        assert!(!courier.is_waiting(now) && courier.failed.is_empty());
    }

    #[test]
    fn groups_that_fail_hold_up_no_other_wherever_they_stand() {
        for bad in [&["a"][..], &["d"], &["a", "b"], &["b", "c", "d"], &["a", "b", "c"]] {
            let mut courier = Courier::default();
            let mut owed = vec!["a", "b", "c", "d"];
            let all = told(&mut courier, &mut owed, 0, 120, |group| !bad.contains(&group));
            assert_eq!(owed, bad, "told {all:?}");
            // New groups are delivered at once, or with the next attempt.
            owed.insert(0, "new");
            let new = told(&mut courier, &mut owed, 120, 80, |group| !bad.contains(&group));
            assert_eq!(new, ["new"], "{bad:?}");
            // Each other group follows when it is confirmed.
            told(&mut courier, &mut owed, 200, 200, |_| true);
            assert_eq!(owed, [""; 0], "{bad:?}");
        }
    }

    #[test]
    fn a_way_that_is_back_is_told_of_the_newest_first_and_is_asked_seldom_while_it_is_away() {
        let mut courier = Courier::default();
        let mut owed = vec!["a", "b", "c", "d"];
        let tries = std::cell::Cell::new(0);
        let none = told(&mut courier, &mut owed, 0, 3600, |_| {
            tries.set(tries.get() + 1);
            false
        });
        assert_eq!(none, [""; 0]);
        // Each attempt tries two groups; all groups are tried within an hour.
        assert!((1800..=2500).contains(&tries.get()), "{}", tries.get());
        // A notification during an outage of 45 s arrived 28 to 33 s after the receiver was back.
        let all = told(&mut courier, &mut owed, 3600, 5, |_| true);
        assert_eq!(all, ["a", "b", "c", "d"]);
    }
}
