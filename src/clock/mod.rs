//! The clocks: the only code that reads the machine's time.
//!
//! Roles, routes and commands read a clock and pass the time on; the model, decisions, the store
//! and queries take times as arguments. Must never know: what the time is used for.

// Paths are those of the crate granary, which reexports these crates.
use granary_model as model;
use granary_policy as policy;

mod trusted;

pub use trusted::{ClockReport, TrustedClock};

use std::fmt;

use crate::model::{Moment, UnixMillis};

/// A source of time. Only roles, the API and commands read it.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the current time.
    fn now(&self) -> UnixMillis;

    /// Returns the current time, with the expected time when the clock is doubted.
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

/// Returns milliseconds since the machine started, including suspended time; nobody can set this
/// clock.
pub fn uptime_ms() -> i64 {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    since.tv_sec * 1000 + since.tv_nsec / 1_000_000
}

/// A measurement of elapsed time.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts a measurement.
    #[expect(clippy::disallowed_methods, reason = "this is the edge where the clock is read")]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Returns the time between the starts of this measurement and a later one.
    pub fn until(&self, later: &Self) -> std::time::Duration {
        later.0.saturating_duration_since(self.0)
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> std::time::Duration {
        self.0.elapsed()
    }

    /// Returns whole milliseconds since the start.
    pub fn millis(&self) -> u64 {
        self.elapsed().as_millis() as u64
    }

    /// Returns seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.elapsed().as_secs_f64()
    }
}
