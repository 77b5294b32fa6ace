//! The only module of an agent that reads a clock; all other modules take the time as an argument.

pub(crate) mod schedule;
pub(crate) mod skew;

use std::{
    sync::OnceLock,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Returns the wall clock, in Unix milliseconds; 0 when it shows a time before 1970.
#[expect(clippy::disallowed_methods, reason = "the edge at which the wall clock is read")]
pub fn unix_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Returns the offset of the wall clock from a steady clock that started with this process, in
/// milliseconds. The offset changes only when the wall clock is set.
pub(crate) fn wall_base_ms() -> i64 {
    static PROCESS_START: OnceLock<Stopwatch> = OnceLock::new();
    let steady = PROCESS_START.get_or_init(Stopwatch::start).elapsed();
    unix_ms().saturating_sub(i64::try_from(steady.as_millis()).unwrap_or(i64::MAX))
}

/// A stopwatch that is immune to steps of the wall clock.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts a stopwatch at zero.
    #[expect(clippy::disallowed_methods, reason = "the edge at which the steady clock is read")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// Returns the rest of `span`, or zero when `span` has passed.
    pub fn left_of(self, span: Duration) -> Duration {
        span.saturating_sub(self.elapsed())
    }
}
