//! Trust in the machine's clock.
//!
//! The expected time is the time of the last run, or of the latest sample when the store has none,
//! plus the machine's uptime since. A clock that is further from the expected time than a bound is
//! doubted, in either direction: the clock may be wrong, or the daemon may have been stopped for a
//! long time. The doubt ends when several senders' clocks agree with the clock and fewer contradict
//! it, or when an operator confirms it.

use std::collections::BTreeMap;

use crate::model::{Moment, UnixMillis};

/// The maximum number of senders whose clocks count; more are not needed for a decision.
const SENDERS_HEARD_MAX: usize = 1024;

/// The rules that start and end a doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustRules {
    /// The maximum distance of the clock from the expected time.
    pub step_max_ms: i64,
    /// The maximum distance of a sender's clock from a time that it confirms.
    pub sender_skew_ms: i64,
    /// The number of senders that together confirm a time.
    pub senders_min: usize,
}

/// A change of the trust in the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustChange {
    /// The clock is doubted from now on.
    Doubted,
    /// The clock agrees with the expected time again.
    Agrees,
    /// This number of senders confirmed the clock, which is trusted again.
    Confirmed(usize),
}

/// The evidence while the clock is doubted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockDoubt {
    /// The clock's time and the expected time.
    pub now: Moment,
    /// Senders whose clocks agree with the machine's.
    pub agree: usize,
    /// Senders whose clocks agree with the expected time.
    pub contradict: usize,
}

/// The trust in the machine's clock. Times are stored as offsets from the uptime.
#[derive(Debug, Clone)]
pub struct Trust {
    rules: TrustRules,
    /// The offset of the expected time; `None` until the clock of a new store was read.
    believed: Option<i64>,
    doubted: Option<Evidence>,
}

/// The senders' clocks since the doubt began.
#[derive(Debug, Clone, Default)]
struct Evidence {
    /// The latest offset of each sender: delay only makes a clock seem slow.
    senders: BTreeMap<Box<str>, i64>,
    /// True when every active sender had time to send.
    is_due: bool,
}

impl Trust {
    /// Creates the trust; `last` is the latest known time of the store's last run, if there was
    /// one.
    pub fn new(rules: TrustRules, last: Option<UnixMillis>, uptime_ms: i64) -> Self {
        Self { rules, believed: last.map(|last| last.0.saturating_sub(uptime_ms)), doubted: None }
    }

    /// Checks the clock's reading; returns the current time, and the change if there is one.
    pub fn read(&mut self, clock: UnixMillis, uptime_ms: i64) -> (Moment, Option<TrustChange>) {
        let offset = clock.0.saturating_sub(uptime_ms);
        let believed = *self.believed.get_or_insert(offset);
        if offset.abs_diff(believed) > self.rules.step_max_ms as u64 {
            let change = self.doubted.is_none().then_some(TrustChange::Doubted);
            self.doubted.get_or_insert_default();
            return (Moment { clock, believed: UnixMillis(believed).plus(uptime_ms) }, change);
        }
        let change = self.doubted.take().map(|_| TrustChange::Agrees);
        self.believed = Some(offset);
        (clock.into(), change)
    }

    /// Records a sender's time.
    pub fn note_sender_time(&mut self, sender: &str, time: UnixMillis, uptime_ms: i64) {
        let Some(Evidence { senders, .. }) = &mut self.doubted else { return };
        let offset = time.0.saturating_sub(uptime_ms);
        if let Some(known) = senders.get_mut(sender) {
            *known = offset.max(*known);
        } else if senders.len() < SENDERS_HEARD_MAX {
            senders.insert(sender.into(), offset);
        }
    }

    /// Ends the doubt when the senders confirm the clock. The first call after the doubt began only
    /// starts the wait: by the next call, all senders had time to send.
    pub fn evaluate(&mut self, clock: UnixMillis, uptime_ms: i64) -> Option<TrustChange> {
        let doubt = self.doubt(clock, uptime_ms)?;
        let was_due = std::mem::replace(&mut self.doubted.as_mut()?.is_due, true);
        let ClockDoubt { agree, contradict, .. } = doubt;
        let confirmed = was_due && agree >= self.rules.senders_min && agree > contradict;
        confirmed.then(|| {
            self.confirm(clock, uptime_ms);
            TrustChange::Confirmed(agree)
        })
    }

    /// Trusts the clock from now on.
    pub fn confirm(&mut self, clock: UnixMillis, uptime_ms: i64) {
        self.believed = Some(clock.0.saturating_sub(uptime_ms));
        self.doubted = None;
    }

    /// Returns the evidence while the clock is doubted.
    pub fn doubt(&self, clock: UnixMillis, uptime_ms: i64) -> Option<ClockDoubt> {
        let (evidence, believed) = (self.doubted.as_ref()?, self.believed?);
        let near = |time: i64| {
            let skew = self.rules.sender_skew_ms as u64;
            evidence.senders.values().filter(|sender| sender.abs_diff(time) <= skew).count()
        };
        let now = Moment { clock, believed: UnixMillis(believed).plus(uptime_ms) };
        Some(ClockDoubt {
            now,
            agree: near(clock.0.saturating_sub(uptime_ms)),
            contradict: near(believed),
        })
    }

    /// Returns the number of senders that together confirm a time.
    pub fn senders_min(&self) -> usize {
        self.rules.senders_min
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_times::{DAY, NOW};

    const UP: i64 = 5_000_000;
    const RULES: TrustRules =
        TrustRules { step_max_ms: DAY, sender_skew_ms: 600_000, senders_min: 2 };

    /// Returns a trust that doubts a clock that is `ahead`.
    fn doubting(ahead: i64) -> (Trust, UnixMillis) {
        let mut trust = Trust::new(RULES, Some(NOW), UP);
        let clock = NOW.plus(ahead);
        let (now, change) = trust.read(clock, UP);
        assert_eq!((now, change), (Moment { clock, believed: NOW }, Some(TrustChange::Doubted)));
        assert_eq!(trust.read(clock.plus(5), UP + 5).1, None, "reported once");
        assert_eq!(trust.evaluate(clock, UP), None, "no sender had time to send");
        (trust, clock)
    }

    #[test]
    fn a_new_store_and_small_steps_are_believed() {
        let mut trust = Trust::new(RULES, None, UP);
        assert_eq!(trust.read(NOW, UP), (NOW.into(), None));
        // The distance to the previous reading is within the bound.
        for (clock, up) in [(NOW.plus(DAY), UP), (NOW, UP), (NOW.plus(30 * DAY), UP + 30 * DAY)] {
            assert_eq!(trust.read(clock, up), (clock.into(), None));
        }
        assert_eq!(trust.doubt(NOW, UP), None);
    }

    #[test]
    fn steps_in_both_directions_are_doubted_until_the_clock_is_right_again() {
        for ahead in [3 * DAY, -3 * DAY, 45_000 * DAY, DAY + 1] {
            let (mut trust, clock) = doubting(ahead);
            // The expected time continues with the uptime.
            let (now, _) = trust.read(clock.plus(7000), UP + 7000);
            assert_eq!(now.believed, NOW.plus(7000));
            let right = NOW.plus(9000);
            assert_eq!(trust.read(right, UP + 9000), (right.into(), Some(TrustChange::Agrees)));
        }
    }

    #[test]
    fn several_senders_confirm_the_clock_and_one_does_not() {
        for ahead in [30 * DAY, -30 * DAY] {
            let (mut trust, clock) = doubting(ahead);
            for _ in 0..5 {
                trust.note_sender_time("web1", clock.minus(10_000), UP);
                assert_eq!(trust.evaluate(clock, UP), None);
            }
            // Samples of a backlog arrive first.
            trust.note_sender_time("web2", clock.minus(20 * DAY), UP);
            assert_eq!(trust.evaluate(clock, UP), None);
            trust.note_sender_time("web2", clock.minus(15_000), UP);
            trust.note_sender_time("web2", clock.minus(18 * DAY), UP);
            assert_eq!(trust.evaluate(clock, UP), Some(TrustChange::Confirmed(2)));
            assert_eq!(trust.read(clock, UP), (clock.into(), None));
        }
    }

    #[test]
    fn senders_that_contradict_keep_the_doubt() {
        let (mut trust, clock) = doubting(3 * DAY);
        for sender in ["here", "here too"] {
            trust.note_sender_time(sender, clock, UP);
        }
        for sender in ["web1", "web2"] {
            trust.note_sender_time(sender, NOW.plus(1000), UP);
        }
        trust.note_sender_time("lost", NOW.minus(400 * DAY), UP);
        assert_eq!(trust.evaluate(clock, UP), None);
        let now = Moment { clock, believed: NOW };
        assert_eq!(trust.doubt(clock, UP), Some(ClockDoubt { now, agree: 2, contradict: 2 }));
        trust.confirm(clock, UP);
        assert_eq!(trust.read(clock, UP), (clock.into(), None));
    }

    #[test]
    fn the_number_of_senders_that_count_is_limited() {
        let (mut trust, clock) = doubting(3 * DAY);
        for sender in 0..5000 {
            trust.note_sender_time(&sender.to_string(), clock, UP);
        }
        trust.note_sender_time("0", UnixMillis::EARLIEST, i64::MAX);
        assert_eq!(trust.doubt(clock, UP).map(|doubt| doubt.agree), Some(SENDERS_HEARD_MAX));
    }
}
