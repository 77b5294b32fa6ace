//! The true time, the machine's clock, which may be wrong, and the time that the daemon trusts.

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

/// The clocks of a history.
#[derive(Debug)]
pub(crate) struct SimulatedClock {
    /// The true time, which only steps advance.
    pub(crate) time: UnixMillis,
    /// The machine clock's offset from the true time.
    error: i64,
    /// The true time at which the machine booted.
    started: UnixMillis,
    trust: Trust,
}

impl SimulatedClock {
    pub(crate) fn new() -> Self {
        Self {
            time: BEGIN,
            error: 0,
            started: BEGIN.minus(HOUR),
            trust: Trust::new(RULES, None, 0),
        }
    }

    /// The time of the machine's clock.
    pub(crate) fn clock(&self) -> UnixMillis {
        self.time.plus(self.error)
    }

    fn uptime(&self) -> i64 {
        self.time.0 - self.started.0
    }

    /// Advances the true time and occasionally sets the clock; returns the new offset.
    pub(crate) fn pass(&mut self, rng: &mut Rng) -> Option<i64> {
        self.time = self.time.plus(rng.i64(0..9 * HOUR));
        if !stages::WILD_CLOCK || rng.u8(0..3) > 0 {
            return None;
        }
        self.error = match rng.u8(0..5) {
            0 => -rng.i64(0..5 * HOUR),
            1 => rng.i64(0..DAY),
            2 => rng.i64(0..400 * DAY),
            3 => -rng.i64(0..40 * DAY),
            _ => 0,
        };
        Some(self.error)
    }

    /// Reboots the machine.
    pub(crate) fn restart_machine(&mut self) {
        self.started = self.time.minus(1000);
    }

    /// Restarts the daemon; its store contains the time of its last run.
    pub(crate) fn restart_daemon(&mut self, last_run: Option<UnixMillis>) {
        self.trust = Trust::new(RULES, last_run, self.uptime());
    }

    /// The daemon's present time.
    pub(crate) fn moment(&mut self) -> Moment {
        self.trust.read(self.clock(), self.uptime()).0
    }

    /// Reports the time of a sender to the daemon.
    pub(crate) fn hear_time(&mut self, sender: &str, time: UnixMillis) {
        self.trust.note_sender_time(sender, time, self.uptime());
    }

    /// Checks whether the senders confirm the clock.
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
