//! The true time, the machine's clock, which may be wrong, and what the daemon believes.

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

/// See the module.
#[derive(Debug)]
pub(crate) struct SimulatedClock {
    /// It moves only when a step moves it.
    pub(crate) time: UnixMillis,
    /// How far the machine's clock is off.
    error: i64,
    /// When the machine was started.
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

    /// What the machine says.
    pub(crate) fn clock(&self) -> UnixMillis {
        self.time.plus(self.error)
    }

    fn uptime(&self) -> i64 {
        self.time.0 - self.started.0
    }

    /// Time passes; now and then the clock is set. Returns by how much it is off then.
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

    /// The machine was started again.
    pub(crate) fn restart_machine(&mut self) {
        self.started = self.time.minus(1000);
    }

    /// The daemon was: it knows from the store when it last ran.
    pub(crate) fn restart_daemon(&mut self, last_run: Option<UnixMillis>) {
        self.trust = Trust::new(RULES, last_run, self.uptime());
    }

    /// What the daemon takes for the present.
    pub(crate) fn moment(&mut self) -> Moment {
        self.trust.read(self.clock(), self.uptime()).0
    }

    /// A sender says what time it is.
    pub(crate) fn hear(&mut self, sender: &str, time: UnixMillis) {
        self.trust.hear(sender, time, self.uptime());
    }

    /// The senders may have ended the doubt.
    pub(crate) fn judge(&mut self) {
        self.moment();
        let (clock, uptime) = (self.clock(), self.uptime());
        self.trust.judge(clock, uptime);
    }

    /// An operator says that the clock is right.
    pub(crate) fn confirm(&mut self) {
        let (clock, uptime) = (self.clock(), self.uptime());
        self.trust.confirm(clock, uptime);
    }
}
