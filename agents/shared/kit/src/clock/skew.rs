//! How far this host's clock is from the daemon's, as the `Date` of its answers says.
//!
//! The wall clock may step at any time, so it is compared with a steady one: both differ by a base,
//! and a clock is right when its base is that of the daemon. Must never know: what is held or shifted.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, UNIX_EPOCH},
};

/// A clock that is further from the daemon's than this is wrong: its samples are in other minutes.
pub(crate) const SKEW_MAX_MS: u64 = 60_000;
/// A `Date` is in whole seconds, and as old as the answer took.
const DATE_MS: i64 = 1_000;
/// An answer that took longer says too little.
const WAITED_MAX: Duration = Duration::from_secs(10);
/// Nothing was heard yet.
const UNKNOWN: i64 = i64::MIN;

/// The daemon's clock.
#[derive(Debug)]
pub(crate) struct DaemonClock {
    /// How far it is ahead of this process' steady clock.
    base_ms: AtomicI64,
}

impl Default for DaemonClock {
    fn default() -> Self {
        Self { base_ms: AtomicI64::new(UNKNOWN) }
    }
}

impl DaemonClock {
    /// Takes in the `Date` of an answer that was waited for, as of now.
    pub(crate) fn hear(&self, date: &str, waited: Duration, (base_ms, now_ms): (i64, i64)) {
        let Ok(date) = httpdate::parse_http_date(date) else { return };
        let Ok(since) = date.duration_since(UNIX_EPOCH) else { return };
        let Ok(date_ms) = i64::try_from(since.as_millis()) else { return };
        if waited > WAITED_MAX {
            return;
        }
        // The daemon wrote it between the question and the answer, in a second that had begun then.
        let waited_ms = waited.as_millis() as i64;
        let ahead_ms = now_ms.saturating_sub(date_ms);
        let is_certain = !(0..=waited_ms + DATE_MS).contains(&ahead_ms);
        let ahead_ms = if is_certain { ahead_ms - i64::midpoint(waited_ms, DATE_MS) } else { 0 };
        self.base_ms.store(base_ms.saturating_sub(ahead_ms), Ordering::Relaxed);
    }

    /// Forgets what was heard: another daemon is asked now.
    pub(crate) fn forget(&self) {
        self.base_ms.store(UNKNOWN, Ordering::Relaxed);
    }

    /// How far a wall clock of this base is ahead of the daemon's, in milliseconds; none before the
    /// first answer.
    pub(crate) fn ahead_ms(&self, base_ms: i64) -> Option<i64> {
        let own = self.base_ms.load(Ordering::Relaxed);
        (own != UNKNOWN).then(|| base_ms.saturating_sub(own))
    }
}

/// A length of time for people, such as `2h 3m ahead of` the daemon's clock.
pub(crate) fn words(ahead_ms: i64) -> String {
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
    fn what_the_time_of_an_answer_explains_is_no_skew() {
        let clock = DaemonClock::default();
        assert_eq!(clock.ahead_ms(500), None);
        for (now, ahead) in [
            (DATE_AT, 0),
            (DATE_AT + 1_999, 0),
            (DATE_AT + 7_200_000 + 1_000, 7_200_000),
            (DATE_AT - 7_200_000 + 1_000, -7_200_000),
        ] {
            clock.hear(DATE, SECOND, (500, now));
            assert_eq!(clock.ahead_ms(500), Some(ahead));
        }
        // The wall clock was set right since.
        assert_eq!(clock.ahead_ms(500 + 7_200_000), Some(0));
        clock.forget();
        assert_eq!(clock.ahead_ms(500), None);
    }

    #[test]
    fn what_is_no_date_and_what_took_too_long_says_nothing() {
        let clock = DaemonClock::default();
        clock.hear("yesterday", SECOND, (0, DATE_AT));
        clock.hear(DATE, Duration::from_secs(11), (0, DATE_AT));
        assert_eq!(clock.ahead_ms(0), None);
        assert_eq!(words(7_380_000), "2h 3m ahead of the daemon's");
        assert_eq!(words(-61_999), "1m 1s behind the daemon's");
    }
}
