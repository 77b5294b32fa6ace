//! The machine's clock, and whether it is trusted; the roles of the daemon read the time here.
//!
//! `policy/clock_trust.rs` decides about the trust. Must never know: what the time is used for.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{Clock, SystemClock, uptime_ms};
use crate::{
    model::{Moment, UnixMillis},
    policy::{ClockDoubt, Trust, TrustChange, TrustRules},
};

/// The machine's clock, and whether it is trusted. Clones are cheap.
#[derive(Debug, Clone)]
pub struct TrustedClock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    trust: Mutex<Trust>,
    /// True while the clock is doubted; callers read this copy without the lock, and collect
    /// senders' clocks only then.
    is_doubted: AtomicBool,
}

/// The state of the clock, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReport {
    /// True while the clock is doubted.
    pub doubted: bool,
    /// The time of the machine's clock.
    pub clock: String,
    /// The expected time.
    pub believed: String,
    /// The lead of the clock over the expected time, in milliseconds.
    pub ahead_ms: i64,
    /// The number of senders whose clocks agree with the machine's.
    pub senders_agree: usize,
    /// The number of senders whose clocks agree with the expected time.
    pub senders_contradict: usize,
    /// The number of agreeing senders that confirms the clock.
    pub senders_min: usize,
}

impl ClockReport {
    /// Returns the problem and its remedy; `None` while the clock is trusted.
    pub fn reason(&self) -> Option<String> {
        let Self { clock, believed, senders_agree, senders_contradict, senders_min, .. } = self;
        self.doubted.then(|| {
            format!(
                "the clock shows {clock}, but {believed} was expected: nothing is expired or \
                 preallocated until the clock is right again, until {senders_min} senders and the \
                 majority agree with it (now {senders_agree} agree, {senders_contradict} do not), or \
                 until `granary clock confirm` confirms it"
            )
        })
    }
}

impl TrustedClock {
    /// Creates the clock. `last_run` is the latest known time of the last run.
    pub fn new(rules: TrustRules, last_run: Option<UnixMillis>) -> Self {
        let trust = Mutex::new(Trust::new(rules, last_run, uptime_ms()));
        Self(Arc::new(Inner { trust, is_doubted: AtomicBool::new(false) }))
    }

    /// Returns the time of the machine's clock.
    pub fn now(&self) -> UnixMillis {
        SystemClock.now()
    }

    /// Returns the time of the machine's clock, with the expected time.
    pub fn moment(&self) -> Moment {
        let (moment, change) = self.0.trust.lock().read(self.now(), uptime_ms());
        self.0.is_doubted.store(moment.is_doubted(), Ordering::Relaxed);
        self.log(change);
        moment
    }

    /// Returns true when the clock was doubted at its last reading.
    pub fn is_doubted(&self) -> bool {
        self.0.is_doubted.load(Ordering::Relaxed)
    }

    /// Records the time of a sender's clock.
    pub fn note_sender_time(&self, sender: &str, time: UnixMillis) {
        self.0.trust.lock().note_sender_time(sender, time, uptime_ms());
    }

    /// Ends the doubt when enough senders confirm the clock.
    pub fn evaluate(&self) {
        self.moment();
        let change = self.0.trust.lock().evaluate(self.now(), uptime_ms());
        self.log(change);
        self.moment();
    }

    /// Trusts the clock from now on, and returns the time.
    pub fn confirm(&self) -> UnixMillis {
        let clock = self.now();
        self.0.trust.lock().confirm(clock, uptime_ms());
        if self.0.is_doubted.swap(false, Ordering::Relaxed) {
            tracing::info!(%clock, "the clock is trusted: an operator confirmed it");
        }
        clock
    }

    /// Returns the state of the clock.
    pub fn report(&self) -> ClockReport {
        let now = self.moment();
        let (doubt, senders_min) = {
            let trust = self.0.trust.lock();
            (trust.doubt(now.clock, uptime_ms()), trust.senders_min())
        };
        let ClockDoubt { now, agree, contradict } =
            doubt.unwrap_or(ClockDoubt { now, agree: 0, contradict: 0 });
        ClockReport {
            doubted: doubt.is_some(),
            clock: now.clock.to_string(),
            believed: now.believed.to_string(),
            ahead_ms: now.clock.0.saturating_sub(now.believed.0),
            senders_agree: agree,
            senders_contradict: contradict,
            senders_min,
        }
    }

    fn log(&self, change: Option<TrustChange>) {
        match change {
            None => {}
            Some(TrustChange::Doubted) => {
                let ClockReport { clock, believed, senders_min, .. } = self.report();
                tracing::warn!(
                    clock,
                    believed,
                    senders_min,
                    "the clock is doubted: nothing is expired or preallocated until the clock is right \
                     again, enough senders agree with it, or `granary clock confirm` confirms it"
                );
            }
            Some(TrustChange::Agrees) => tracing::info!("the clock is trusted: it is right again"),
            Some(TrustChange::Confirmed(senders)) => {
                tracing::info!(senders, "the clock is trusted: senders agree with it");
            }
        }
    }
}

impl Clock for TrustedClock {
    fn now(&self) -> UnixMillis {
        self.now()
    }

    fn moment(&self) -> Moment {
        self.moment()
    }
}
