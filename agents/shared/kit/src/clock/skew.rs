//! The difference between the clocks of this host and the daemon, measured by the `Date` header of
//! answers.
//!
//! The wall clock may step at any time, so the base of a clock describes it: the offset from a
//! steady clock. This host's clock is right when both bases are equal. Must never know: which
//! samples are held or shifted.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, UNIX_EPOCH},
};

/// The largest tolerated difference. Beyond it, samples would fall into other minutes.
pub(crate) const SKEW_MAX_MS: u64 = 60_000;
/// The precision of a `Date` header, which has whole seconds.
const DATE_PRECISION_MS: i64 = 1_000;
/// The duration of a request above which its answer is too imprecise and is ignored.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The value before the first answer.
const UNKNOWN: i64 = i64::MIN;

/// The daemon's clock.
#[derive(Debug)]
pub(crate) struct DaemonClock {
    /// The offset of the daemon's clock from the steady clock of this process.
    base_ms: AtomicI64,
}

impl Default for DaemonClock {
    fn default() -> Self {
        Self { base_ms: AtomicI64::new(UNKNOWN) }
    }
}

impl DaemonClock {
    /// Updates the offset from the `Date` header of an answer that has just arrived.
    pub(crate) fn note_server_time(
        &self,
        date: &str,
        waited: Duration,
        (base_ms, now_ms): (i64, i64),
    ) {
        let Ok(date) = httpdate::parse_http_date(date) else { return };
        let Ok(since) = date.duration_since(UNIX_EPOCH) else { return };
        let Ok(date_ms) = i64::try_from(since.as_millis()) else { return };
        if waited > WAIT_MAX {
            return;
        }
        // The daemon wrote the header between the request and the answer, and rounded it down to a
        // second.
        let waited_ms = waited.as_millis() as i64;
        let ahead_ms = now_ms.saturating_sub(date_ms);
        let is_certain = !(0..=waited_ms + DATE_PRECISION_MS).contains(&ahead_ms);
        let ahead_ms =
            if is_certain { ahead_ms - i64::midpoint(waited_ms, DATE_PRECISION_MS) } else { 0 };
        self.base_ms.store(base_ms.saturating_sub(ahead_ms), Ordering::Relaxed);
    }

    /// Clears the offset, because another daemon is used from now on.
    pub(crate) fn clear(&self) {
        self.base_ms.store(UNKNOWN, Ordering::Relaxed);
    }

    /// Returns the milliseconds by which a wall clock with this base is ahead of the daemon's
    /// clock, or `None` before the first answer.
    pub(crate) fn ahead_ms(&self, base_ms: i64) -> Option<i64> {
        let daemon_ms = self.base_ms.load(Ordering::Relaxed);
        (daemon_ms != UNKNOWN).then(|| base_ms.saturating_sub(daemon_ms))
    }
}

/// Formats a difference for people, such as `2h 3m ahead of the daemon's`.
pub(crate) fn describe_skew(ahead_ms: i64) -> String {
    let span = humantime::format_duration(Duration::from_secs(ahead_ms.unsigned_abs() / 1000));
    let side = if ahead_ms > 0 { "ahead of" } else { "behind" };
    format!("{span} {side} the daemon's")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Mon, 23 Nov 2026 10:35:06 GMT";
    const DATE_AT: i64 = 1_795_430_106_000;
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_difference_within_the_round_trip_is_not_skew() {
        let clock = DaemonClock::default();
        assert_eq!(clock.ahead_ms(500), None);
        for (now, ahead) in [
            (DATE_AT, 0),
            (DATE_AT + 1_999, 0),
            (DATE_AT + 7_200_000 + 1_000, 7_200_000),
            (DATE_AT - 7_200_000 + 1_000, -7_200_000),
        ] {
            clock.note_server_time(DATE, SECOND, (500, now));
            assert_eq!(clock.ahead_ms(500), Some(ahead));
        }
        // The wall clock has been corrected in the meantime.
        assert_eq!(clock.ahead_ms(500 + 7_200_000), Some(0));
        clock.clear();
        assert_eq!(clock.ahead_ms(500), None);
    }

    #[test]
    fn invalid_dates_and_slow_responses_do_not_set_the_skew() {
        let clock = DaemonClock::default();
        clock.note_server_time("yesterday", SECOND, (0, DATE_AT));
        clock.note_server_time(DATE, Duration::from_secs(11), (0, DATE_AT));
        assert_eq!(clock.ahead_ms(0), None);
        assert_eq!(describe_skew(7_380_000), "2h 3m ahead of the daemon's");
        assert_eq!(describe_skew(-61_999), "1m 1s behind the daemon's");
    }
}
