//! Senders that send the same samples, such as two StatsD agents behind one address: which of them
//! counts when.
//!
//! Counters and gauges bear it, but deltas of both would count twice. So each stretch of a series'
//! time belongs to one sender: the first that is seen, until it has been silent for a while, then
//! the next. Must never know: which senders are such, and where picks are kept.

use super::UnixMillis;

/// A sender that is one of several that send the same samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Replica {
    /// Which prefix its name has.
    pub group: u16,
    /// Hash of its name.
    pub sender: u64,
}

/// Whose samples of a series count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick {
    /// The sender that counts since a time.
    sender: u64,
    since: i64,
    /// Its latest sample.
    last: i64,
    /// The sender that counts before; the first that comes.
    before: Option<u64>,
    /// Up to this time it is not known which sender counted.
    floor: i64,
}

/// What a sample does to a pick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PickVerdict {
    /// It counts.
    Counts,
    /// It counts, and its sender from now on: the other one is silent.
    Failover,
    /// Another sender's samples count.
    OfAnother,
}

impl Pick {
    /// Picks the sender of a first sample. `known` is the series' latest sample when nothing is known
    /// of its senders, as after a restart; `None` when the sample is not later.
    pub fn first(sender: u64, at: UnixMillis, known: Option<UnixMillis>) -> Option<Self> {
        let floor = known.map_or(i64::MIN, |known| known.0);
        (at.0 > floor).then_some(Self { sender, since: at.0, last: at.0, before: None, floor })
    }

    /// Judges a sample, and notes it when it counts. A sender that had no sample for `failover_ms`
    /// is silent.
    pub fn take(&mut self, sender: u64, at: UnixMillis, failover_ms: i64) -> PickVerdict {
        let UnixMillis(at) = at;
        if at < self.since {
            let counts = at > self.floor && *self.before.get_or_insert(sender) == sender;
            return if counts { PickVerdict::Counts } else { PickVerdict::OfAnother };
        }
        if sender == self.sender {
            self.last = self.last.max(at);
            return PickVerdict::Counts;
        }
        if at <= self.last.saturating_add(failover_ms) {
            return PickVerdict::OfAnother;
        }
        // Two stretches are remembered; the one before them was another sender's, unless it was its own.
        if self.before.is_some_and(|before| before != self.sender) {
            self.floor = self.since - 1;
        }
        (self.before, self.sender) = (Some(self.sender), sender);
        (self.since, self.last) = (at, at);
        PickVerdict::Failover
    }

    /// The latest sample that counted.
    pub fn last(&self) -> UnixMillis {
        UnixMillis(self.last)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const FAILOVER: i64 = 30_000;
    const STEP: i64 = 10_000;

    fn take(pick: &mut Option<Pick>, sender: u64, at: i64) -> bool {
        let at = UnixMillis(at);
        if let Some(pick) = pick {
            return pick.take(sender, at, FAILOVER) != PickVerdict::OfAnother;
        }
        *pick = Pick::first(sender, at, None);
        pick.is_some()
    }

    #[test]
    fn the_other_sender_counts_once_the_first_is_silent_and_goes_on() {
        let mut pick = None;
        for second in [0, 10, 20] {
            assert!(take(&mut pick, 1, second * 1000));
            assert!(!take(&mut pick, 2, second * 1000 + 3000));
        }
        assert!(!take(&mut pick, 2, 50_000));
        assert!(take(&mut pick, 2, 50_001));
        // The first one is back with what it kept: what nobody has sent counts, the rest is there.
        assert!(take(&mut pick, 1, 30_000) && take(&mut pick, 1, 50_000));
        assert!(!take(&mut pick, 1, 60_000));
        assert!(take(&mut pick, 2, 60_001));
    }

    #[test]
    fn after_a_restart_nothing_counts_up_to_the_latest_sample() {
        assert_eq!(Pick::first(2, UnixMillis(5), Some(UnixMillis(5))), None);
        let mut pick = Pick::first(2, UnixMillis(9), Some(UnixMillis(5)));
        assert!(!take(&mut pick, 1, 5) && take(&mut pick, 1, 7) && !take(&mut pick, 1, 9));
    }

    proptest! {
        /// Two senders send all samples of a time line, each in its order, in any turns.
        #[test]
        fn every_sample_counts_at_most_once_and_one_senders_all_when_it_alone_sends(
            turns in prop::collection::vec(any::<bool>(), 1..200), shift in 0..STEP
        ) {
            let mut pick = None;
            let mut next = [0_i64; 2];
            let mut counted: BTreeMap<i64, u32> = BTreeMap::new();
            let mut switches = 0;
            let mut last = None;
            for turn in turns.iter().map(|turn| usize::from(*turn)) {
                let step = next[turn];
                next[turn] += 1;
                if take(&mut pick, turn as u64 + 1, step * STEP + turn as i64 * shift) {
                    *counted.entry(step).or_default() += 1;
                    switches += u32::from(last.is_some_and(|last| last != turn));
                    last = Some(turn);
                }
            }
            // Where one sender follows the other, a step of both may be on its own side.
            let twice = counted.values().filter(|count| **count > 1).count() as u32;
            prop_assert!(twice <= switches, "{counted:?}");
            let alone = turns.iter().all(|turn| *turn == turns[0]);
            prop_assert!(!alone || counted.len() == turns.len());
            prop_assert!(counted.values().all(|count| *count <= 2));
        }
    }
}
