//! The true time, the machine's clock (which may be wrong), and the time that the daemon trusts.

use fastrand::Rng;
use granary::{
    model::{Moment, UnixMillis},
    policy::{Trust, TrustRules},
};

use crate::{
    setup::{DAY, HOUR, NOW as BEGIN},
    stages,
};

const RULES: TrustRules = TrustRules { step_max_ms: DAY, sender_skew_ms: 600_000, senders_min: 2 };

/// The true time of a history, and the clocks of its machine and daemon.
#[derive(Debug)]
pub(crate) struct SimulatedClock {
    /// The true time, which only steps advance.
    pub(crate) time: UnixMillis,
    /// The machine clock's offset from the true time.
    clock_offset: i64,
    /// The true time at which the machine booted.
    booted_at: UnixMillis,
    trust: Trust,
}

impl SimulatedClock {
    pub(crate) fn new() -> Self {
        Self {
            time: BEGIN,
            clock_offset: 0,
            booted_at: BEGIN.minus(HOUR),
            trust: Trust::new(RULES, None, 0),
        }
    }

    /// Returns the time of the machine's clock.
    pub(crate) fn clock(&self) -> UnixMillis {
        self.time.plus(self.clock_offset)
    }

    fn uptime(&self) -> i64 {
        self.time.0 - self.booted_at.0
    }

    /// Advances the true time and occasionally sets the clock; returns the new offset.
    pub(crate) fn advance(&mut self, rng: &mut Rng) -> Option<i64> {
        self.time = self.time.plus(rng.i64(0..9 * HOUR));
        if !stages::WILD_CLOCK || rng.u8(0..3) > 0 {
            return None;
        }
        self.clock_offset = match rng.u8(0..5) {
            0 => -rng.i64(0..5 * HOUR),
            1 => rng.i64(0..DAY),
            2 => rng.i64(0..400 * DAY),
            3 => -rng.i64(0..40 * DAY),
            _ => 0,
        };
        Some(self.clock_offset)
    }

    /// Reboots the machine.
    pub(crate) fn restart_machine(&mut self) {
        self.booted_at = self.time.minus(1000);
    }

    /// Restarts the daemon; its store contains the time of its last run.
    pub(crate) fn restart_daemon(&mut self, last_run: Option<UnixMillis>) {
        self.trust = Trust::new(RULES, last_run, self.uptime());
    }

    /// Returns the daemon's current time.
    pub(crate) fn moment(&mut self) -> Moment {
        self.trust.read(self.clock(), self.uptime()).0
    }

    /// Reports the time of a sender to the daemon.
    pub(crate) fn report_sender_time(&mut self, sender: &str, time: UnixMillis) {
        self.trust.note_sender_time(sender, time, self.uptime());
    }

    /// Lets the daemon trust the clock if its senders confirm it.
    pub(crate) fn evaluate(&mut self) {
        self.moment();
        let (clock, uptime) = (self.clock(), self.uptime());
        self.trust.evaluate(clock, uptime);
    }

    /// Confirms the clock, as an operator does.
    pub(crate) fn confirm(&mut self) {
        let (clock, uptime) = (self.clock(), self.uptime());
        self.trust.confirm(clock, uptime);
    }
}
