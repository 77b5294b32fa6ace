//! The order in which one integration of a receiver gets the notifications of its groups, with
//! backoff.
//!
//! An integration that fails is retried with the newest group, at growing intervals. Another group
//! is tried right after the first failure: it shows whether the integration is down or rejects only
//! that one message. A group that fails repeatedly therefore delays no other group, and an
//! integration that is back gets the newest notification first. Must never know: the contents of
//! groups, how anything is sent.

use std::collections::BTreeMap;

use crate::model::UnixMillis;

/// The divisor of the jitter: a retry is earlier by up to a quarter of the wait.
const JITTER_PARTS: i64 = 4;

/// The delivery state of one integration of a receiver.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    is_busy: bool,
    /// The number of failures in a row; a failed group and the group tried after it count once.
    failures: u32,
    /// The earliest time of the next attempt.
    next_at: Option<UnixMillis>,
    /// The group that failed last, until another group is tried.
    last_failed: Option<String>,
    /// The group that failed right before the group that is being sent.
    failed_before: Option<String>,
    /// Groups that failed since their last delivery.
    failed: BTreeMap<String, FailedDelivery>,
}

#[derive(Debug, Default)]
struct FailedDelivery {
    times: u32,
    next_at: Option<UnixMillis>,
}

/// Returns the wait after some failures in a row, in milliseconds. The wait is short, so that a
/// receiver that is back is notified within five seconds.
fn backoff_ms(failures: u32) -> i64 {
    const WAIT_MIN_MS: i64 = 1000;
    const WAIT_MAX_MS: i64 = 4000;
    WAIT_MIN_MS.saturating_mul(1 << failures.min(10)).min(WAIT_MAX_MS)
}

/// Returns true before the time of the next attempt. A time that is too far ahead is ignored: the
/// clock was set back.
fn is_before(next_at: Option<UnixMillis>, now: UnixMillis) -> bool {
    next_at.is_some_and(|at| (1..=2 * backoff_ms(u32::MAX)).contains(&at.since(now)))
}

fn next_attempt(failures: u32, now: UnixMillis) -> UnixMillis {
    let wait_ms = backoff_ms(failures);
    now.plus(wait_ms - fastrand::i64(0..=wait_ms / JITTER_PARTS))
}

impl Retries {
    /// Returns the index of the group to send now, and marks the integration as busy. `pending` are
    /// the groups with pending notifications, newest first.
    pub(crate) fn take_due(&mut self, pending: &[&str], now: UnixMillis) -> Option<usize> {
        if self.is_busy || pending.is_empty() {
            return None;
        }
        if self.failed.len() > pending.len() {
            self.failed.retain(|group, _| pending.contains(&group.as_str()));
        }
        let failed = |at: &usize| self.failed.get(*pending.get(*at)?);
        let is_other = |at: &usize| {
            self.last_failed
                .as_deref()
                .is_some_and(|failed| pending.get(*at).is_some_and(|group| *group != failed))
        };
        let others = (0..pending.len()).filter(is_other);
        let other = others.min_by_key(|at| failed(at).map_or(0, |failed| failed.times));
        let found = match other {
            Some(_) => other,
            None if is_before(self.next_at, now) => None,
            None if self.failures > 0 => Some(0),
            None => (0..pending.len())
                .find(|at| !is_before(failed(at).and_then(|failed| failed.next_at), now)),
        };
        if other.is_some() {
            self.failed_before = self.last_failed.take();
        }
        self.is_busy = found.is_some();
        found
    }

    /// Returns true while a message is being sent.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Returns true while the receiver is down and the next attempt is not due.
    pub(crate) fn is_waiting(&self, now: UnixMillis) -> bool {
        self.last_failed.is_none() && is_before(self.next_at, now)
    }

    /// Records that the group no longer has a pending notification.
    pub(crate) fn cancel_send(&mut self) {
        self.is_busy = false;
        self.last_failed = self.failed_before.take().or_else(|| self.last_failed.take());
    }

    /// Records that the integration accepted or rejected a notification of a group and is therefore
    /// up. Returns true when it was down before.
    pub(crate) fn record_answer(&mut self, group: &str) -> bool {
        self.is_busy = false;
        let was_down = self.failures > 0;
        let failed_before = self.failed_before.take();
        // Groups that failed because the integration was down need not wait any longer.
        if self.failures > u32::from(failed_before.is_some()) {
            self.failed.retain(|other, _| Some(other) == failed_before.as_ref());
        }
        self.failed.remove(group);
        (self.failures, self.next_at, self.last_failed) = (0, None, None);
        was_down
    }

    /// Records that a notification of a group failed. Returns true when the integration was up
    /// before.
    pub(crate) fn record_failure(&mut self, group: &str, now: UnixMillis) -> bool {
        self.is_busy = false;
        let failed = self.failed.entry(group.to_owned()).or_default();
        failed.next_at = Some(next_attempt(failed.times, now));
        failed.times = failed.times.saturating_add(1);
        if self.failed_before.take().is_some() {
            // Both groups failed, so the integration is down.
            self.next_at = Some(next_attempt(self.failures.saturating_sub(1), now));
            return false;
        }
        self.next_at = Some(next_attempt(self.failures, now));
        self.failures = self.failures.saturating_add(1);
        self.last_failed = Some(group.to_owned());
        self.failures == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends each group once within a few seconds to an integration that accepts the groups
    /// for which `accepts` is true; returns the delivered groups.
    fn delivered(
        retries: &mut Retries,
        pending: &mut Vec<&'static str>,
        from: i64,
        seconds: i64,
        accepts: impl Fn(&str) -> bool,
    ) -> Vec<&'static str> {
        let mut delivered = Vec::new();
        for second in from..from + seconds {
            let now = UnixMillis(second * 1000);
            while let Some(at) = retries.take_due(pending, now) {
                let group = pending[at];
                assert_eq!(
                    retries.take_due(pending, now),
                    None,
                    "an integration sends one message at a time"
                );
                if accepts(group) {
                    retries.record_answer(group);
                    pending.retain(|pending| *pending != group);
                    delivered.push(group);
                } else {
                    retries.record_failure(group, now);
                }
            }
        }
        delivered
    }

    #[test]
    fn retries_of_a_receiver_that_is_down_wait_longer_each_time_up_to_four_seconds() {
        assert_eq!([0, 1, 3, 30].map(backoff_ms), [1000, 2000, 4000, 4000]);
        let mut retries = Retries::default();
        let now = UnixMillis(10_000);
        for group in ["a", "b"] {
            assert!(!retries.is_waiting(now));
            assert!(retries.take_due(&["a", "b"], now).is_some());
            retries.record_failure(group, now);
        }
        assert!(retries.is_waiting(now));
        assert!(!retries.is_waiting(now.plus(backoff_ms(0))));
        // The clock was set back.
        assert!(!retries.is_waiting(now.minus(3_600_000)));
        retries.take_due(&["a", "b"], now.plus(1000)).unwrap();
        retries.record_answer("a");
        assert!(!retries.is_waiting(now) && retries.failed.is_empty());
    }

    #[test]
    fn groups_that_fail_delay_no_other_group() {
        for failing in [&["a"][..], &["d"], &["a", "b"], &["b", "c", "d"], &["a", "b", "c"]] {
            let mut retries = Retries::default();
            let mut pending = vec!["a", "b", "c", "d"];
            let all =
                delivered(&mut retries, &mut pending, 0, 120, |group| !failing.contains(&group));
            assert_eq!(pending, failing, "delivered {all:?}");
            // A new group is delivered at once, or with the next attempt.
            pending.insert(0, "new");
            let new =
                delivered(&mut retries, &mut pending, 120, 80, |group| !failing.contains(&group));
            assert_eq!(new, ["new"], "{failing:?}");
            // The failed groups are delivered once the integration accepts them.
            delivered(&mut retries, &mut pending, 200, 200, |_| true);
            assert_eq!(pending, [""; 0], "{failing:?}");
        }
    }

    #[test]
    fn an_integration_that_is_back_gets_the_newest_first_and_is_rarely_tried_while_it_is_down() {
        let mut retries = Retries::default();
        let mut pending = vec!["a", "b", "c", "d"];
        let tries = std::cell::Cell::new(0);
        let none = delivered(&mut retries, &mut pending, 0, 3600, |_| {
            tries.set(tries.get() + 1);
            false
        });
        assert_eq!(none, [""; 0]);
        // Two groups are tried each time, for an hour.
        assert!((1800..=2500).contains(&tries.get()), "{}", tries.get());
        // Regression: notifications arrived up to 33 s after the receiver was up again.
        let all = delivered(&mut retries, &mut pending, 3600, 5, |_| true);
        assert_eq!(all, ["a", "b", "c", "d"]);
    }
}
