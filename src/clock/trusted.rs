//! The machine's clock, and whether it is believed; what the daemon's roles take the time from.
//!
//! `policy/trust.rs` decides. Must never know: what is done with the time.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{Clock, SystemClock, uptime_ms};
use crate::{
    model::{Moment, UnixMillis},
    policy::{Change, Doubt, Trust, TrustRules},
};

/// The machine's clock, with what is known against it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TrustedClock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    trust: Mutex<Trust>,
    /// So that senders are listened to only when it matters.
    is_doubted: AtomicBool,
}

/// The state of the clock, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReport {
    /// True while the clock is doubted.
    pub doubted: bool,
    /// The time of the machine's clock.
    pub clock: String,
    /// The time that is believed.
    pub believed: String,
    /// The lead of the clock over that, in milliseconds.
    pub ahead_ms: i64,
    /// Senders whose clocks agree with it.
    pub senders_agree: usize,
    /// Senders whose clocks agree with what is believed.
    pub senders_contradict: usize,
    /// Senders that confirm the clock when they agree.
    pub senders_min: usize,
}

impl ClockReport {
    /// The problem and its remedy; `None` while the clock is believed.
    pub fn reason(&self) -> Option<String> {
        let Self { clock, believed, senders_agree, senders_contradict, senders_min, .. } = self;
        self.doubted.then(|| {
            format!(
                "the clock says {clock} and {believed} was expected: nothing is dropped or \
                 preallocated until it is right again, {senders_min} senders agree with it and \
                 fewer do not (now {senders_agree} and {senders_contradict}), or \
                 `granary clock confirm` says that it is right"
            )
        })
    }
}

impl TrustedClock {
    /// `last_run` is what the time was at least when the store was last run.
    pub fn new(rules: TrustRules, last_run: Option<UnixMillis>) -> Self {
        let trust = Mutex::new(Trust::new(rules, last_run, uptime_ms()));
        Self(Arc::new(Inner { trust, is_doubted: AtomicBool::new(false) }))
    }

    /// The time of the machine's clock.
    pub fn now(&self) -> UnixMillis {
        SystemClock.now()
    }

    /// The time of the machine's clock, with the time that is believed.
    pub fn moment(&self) -> Moment {
        let (moment, change) = self.0.trust.lock().read(self.now(), uptime_ms());
        self.0.is_doubted.store(moment.is_doubted(), Ordering::Relaxed);
        self.note(change);
        moment
    }

    /// True when the clock was doubted when it was last read.
    pub fn is_doubted(&self) -> bool {
        self.0.is_doubted.load(Ordering::Relaxed)
    }

    /// Takes in what a sender's clock says.
    pub fn hear(&self, sender: &str, time: UnixMillis) {
        self.0.trust.lock().hear(sender, time, uptime_ms());
    }

    /// Ends the doubt when enough senders confirm the clock.
    pub fn judge(&self) {
        self.moment();
        let change = self.0.trust.lock().judge(self.now(), uptime_ms());
        self.note(change);
        self.moment();
    }

    /// Believes the clock from now on; returns the time.
    pub fn confirm(&self) -> UnixMillis {
        let clock = self.now();
        self.0.trust.lock().confirm(clock, uptime_ms());
        if self.0.is_doubted.swap(false, Ordering::Relaxed) {
            tracing::info!(%clock, "the clock is believed: an operator confirmed it");
        }
        clock
    }

    /// The state of the clock.
    pub fn report(&self) -> ClockReport {
        let now = self.moment();
        let (doubt, senders_min) = {
            let trust = self.0.trust.lock();
            (trust.doubt(now.clock, uptime_ms()), trust.senders_min())
        };
        let Doubt { now, agree, contradict } =
            doubt.unwrap_or(Doubt { now, agree: 0, contradict: 0 });
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

    fn note(&self, change: Option<Change>) {
        match change {
            None => {}
            Some(Change::Doubted) => {
                let ClockReport { clock, believed, senders_min, .. } = self.report();
                tracing::warn!(
                    clock,
                    believed,
                    senders_min,
                    "the clock is doubted: nothing is dropped or preallocated until it is right \
                     again, enough senders agree with it, or `granary clock confirm` says that it \
                     is right"
                );
            }
            Some(Change::Agrees) => tracing::info!("the clock is believed: it is right again"),
            Some(Change::Confirmed(senders)) => {
                tracing::info!(senders, "the clock is believed: senders agree with it");
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
