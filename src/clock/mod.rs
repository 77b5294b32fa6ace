//! Where the time comes from: the one place that reads the machine's clocks.
//!
//! The shell (roles, routes, commands) reads a clock and hands the time on; the model, decisions, the
//! store and queries take times as arguments. Must never know: what the time is needed for.

mod trusted;

pub use trusted::{ClockReport, TrustedClock};

use std::fmt;

use crate::model::{Moment, UnixMillis};

/// Where the time comes from. Only the shell (roles, API, command line) reads it.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The time now.
    fn now(&self) -> UnixMillis;

    /// The time now, with what is known against it.
    fn moment(&self) -> Moment {
        self.now().into()
    }
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the edge where the clock is read")]
    fn now(&self) -> UnixMillis {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        UnixMillis(since.map_or(0, |elapsed| elapsed.as_millis() as i64))
    }
}

/// Milliseconds since the machine was started, its sleep included: no one can set it.
pub fn uptime_ms() -> i64 {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    since.tv_sec * 1000 + since.tv_nsec / 1_000_000
}

/// Measures how long a piece of work takes.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts measuring.
    #[expect(clippy::disallowed_methods, reason = "this is the edge where the clock is read")]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// From the start to that of another one, which was started later.
    pub fn until(&self, later: &Self) -> std::time::Duration {
        later.0.saturating_duration_since(self.0)
    }

    /// Time since the start.
    pub fn elapsed(&self) -> std::time::Duration {
        self.0.elapsed()
    }

    /// Whole milliseconds since the start.
    pub fn millis(&self) -> u64 {
        self.elapsed().as_millis() as u64
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.elapsed().as_secs_f64()
    }
}
