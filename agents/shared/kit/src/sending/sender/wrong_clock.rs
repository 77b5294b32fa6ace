//! Sending while this host's clock is wrong: the sender holds the samples, or sends them with the
//! daemon's times.

use tracing::{info, warn};

use super::Sender;
use crate::{
    ClockOf,
    clock::{
        skew::{SKEW_MAX_MS, describe_skew},
        unix_ms, wall_base_ms,
    },
};

/// The smallest difference that is corrected; smaller differences are below the precision of the
/// measurement.
const CORRECTED_MIN_MS: u64 = 2_000;

/// The clock in use, and the logged state of this host's clock.
#[derive(Debug, Default)]
pub(super) struct ClockGuard {
    clock_of: ClockOf,
    /// True when a log line has reported that this host's clock is wrong.
    is_wrong_logged: bool,
}

impl ClockGuard {
    /// Creates the initial state: nothing is logged yet.
    pub(super) fn new(clock_of: ClockOf) -> Self {
        Self { clock_of, is_wrong_logged: false }
    }
}

impl Sender {
    /// Returns true when samples wait until the clock is right. The log shows the start and the end
    /// of this state once.
    pub(super) fn waits_for_clock(&mut self) -> bool {
        let ahead_ms = self.client.clock().ahead_ms(wall_base_ms());
        let Some(ahead_ms) = ahead_ms else {
            return self.clock_guard.is_wrong_logged && self.clock_guard.clock_of == ClockOf::Host;
        };
        let is_wrong = ahead_ms.unsigned_abs() >= SKEW_MAX_MS;
        let url = self.client.url();
        let was_wrong = std::mem::replace(&mut self.clock_guard.is_wrong_logged, is_wrong);
        match (was_wrong, is_wrong, self.clock_guard.clock_of) {
            (false, true, ClockOf::Host) => warn!(
                url,
                clock = describe_skew(ahead_ms),
                "this host's clock is wrong; samples wait until it is right: set the clock, or set \
                 the agent's option clock to daemon"
            ),
            (false, true, ClockOf::Daemon) => warn!(
                url,
                clock = describe_skew(ahead_ms),
                "this host's clock is wrong; samples are sent with the daemon's times"
            ),
            (true, false, _) => info!(url, "this host's clock is right again"),
            (false, false, _) | (true, true, _) => {}
        }
        is_wrong && self.clock_guard.clock_of == ClockOf::Host
    }

    /// Returns how far this host's clock was ahead of the daemon's when a batch was stored, or 0
    /// when it was right.
    pub(super) fn ahead_of(&self, seq: u64) -> i64 {
        let base_ms = self.spool.wall_base_of(seq).unwrap_or_else(wall_base_ms);
        let threshold_ms = match self.clock_guard.clock_of {
            ClockOf::Host => SKEW_MAX_MS,
            ClockOf::Daemon => CORRECTED_MIN_MS,
        };
        let ahead_ms = self.client.clock().ahead_ms(base_ms).unwrap_or(0);
        if ahead_ms.unsigned_abs() >= threshold_ms { ahead_ms } else { 0 }
    }

    /// Returns the current time, by the daemon's clock when this host's clock is wrong.
    pub(super) fn now_ms(&self) -> i64 {
        let ahead_ms = self.client.clock().ahead_ms(wall_base_ms()).unwrap_or(0);
        let is_wrong = ahead_ms.unsigned_abs() >= SKEW_MAX_MS;
        unix_ms().saturating_sub(if is_wrong { ahead_ms } else { 0 })
    }
}
