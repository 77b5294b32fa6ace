//! Deduplication of senders that send the same samples, such as two StatsD agents behind one
//! address.
//!
//! Counters and gauges tolerate duplicates, but deltas of both would count twice. Each stretch of a
//! series' time therefore belongs to one sender: the first one, until it has been silent for the
//! failover time, then the next. Must never know: which senders are replicas, where the selection
//! is stored.

use super::UnixMillis;

/// A sender that is one of several that send the same samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Replica {
    /// The index of the configured prefix with which the sender's name begins.
    pub group: u16,
    /// The time without a sample after which another sender takes over, in milliseconds.
    pub failover_ms: u32,
    /// The hash of the sender's name.
    pub sender: u64,
}

/// The sender whose samples of a series count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectedSender {
    /// The sender that counts now.
    sender: u64,
    /// The time from which on this sender counts.
    since: i64,
    /// The time of the latest sample that counted.
    last_counted: i64,
    /// The sender that counts before `since`: the previous sender, or the first sender that sent an
    /// older sample.
    previous_sender: Option<u64>,
    /// The time up to which it is unknown which sender counted.
    floor: i64,
}

/// The effect of a sample on the selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaVerdict {
    /// The sample counts.
    Counts,
    /// The sample counts, and its sender replaces the other one, which is silent.
    Failover,
    /// The sample does not count, because another sender's samples do.
    OfAnother,
}

impl SelectedSender {
    /// Selects the sender of a first sample. `known` is the time of the series' latest sample if
    /// its senders are unknown, as after a restart. Returns `None` if the sample is not later.
    pub fn first(sender: u64, at: UnixMillis, known: Option<UnixMillis>) -> Option<Self> {
        let floor = known.map_or(i64::MIN, |known| known.0);
        (at.0 > floor).then_some(Self {
            sender,
            since: at.0,
            last_counted: at.0,
            previous_sender: None,
            floor,
        })
    }

    /// Decides whether a sample counts, and records it if it does. A sender without a sample for
    /// `failover_ms` is silent.
    pub fn accept(&mut self, sender: u64, at: UnixMillis, failover_ms: i64) -> ReplicaVerdict {
        let UnixMillis(at) = at;
        if at < self.since {
            let counts = at > self.floor && *self.previous_sender.get_or_insert(sender) == sender;
            return if counts { ReplicaVerdict::Counts } else { ReplicaVerdict::OfAnother };
        }
        if sender == self.sender {
            self.last_counted = self.last_counted.max(at);
            return ReplicaVerdict::Counts;
        }
        if at <= self.last_counted.saturating_add(failover_ms) {
            return ReplicaVerdict::OfAnother;
        }
        // A selection remembers two stretches. The stretch before `since` is therefore forgotten,
        // unless it belongs to the sender whose stretch ends now.
        if self.previous_sender.is_some_and(|previous_sender| previous_sender != self.sender) {
            self.floor = self.since - 1;
        }
        (self.previous_sender, self.sender) = (Some(self.sender), sender);
        (self.since, self.last_counted) = (at, at);
        ReplicaVerdict::Failover
    }

    /// Returns the time of the latest sample that counted.
    pub fn last_counted(&self) -> UnixMillis {
        UnixMillis(self.last_counted)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const FAILOVER: i64 = 30_000;
    const STEP: i64 = 10_000;

    fn take(selected: &mut Option<SelectedSender>, sender: u64, at: i64) -> bool {
        let at = UnixMillis(at);
        if let Some(selected) = selected {
            return selected.accept(sender, at, FAILOVER) != ReplicaVerdict::OfAnother;
        }
        *selected = SelectedSender::first(sender, at, None);
        selected.is_some()
    }

    #[test]
    fn the_second_sender_counts_once_the_first_is_silent_and_continues_to_count() {
        let mut selected = None;
        for second in [0, 10, 20] {
            assert!(take(&mut selected, 1, second * 1000));
            assert!(!take(&mut selected, 2, second * 1000 + 3000));
        }
        assert!(!take(&mut selected, 2, 50_000));
        assert!(take(&mut selected, 2, 50_001));
        // The first sender returns with its backlog: samples that nobody has sent count, the rest
        // are duplicates.
        assert!(take(&mut selected, 1, 30_000) && take(&mut selected, 1, 50_000));
        assert!(!take(&mut selected, 1, 60_000));
        assert!(take(&mut selected, 2, 60_001));
    }

    #[test]
    fn after_a_restart_nothing_counts_up_to_the_latest_sample() {
        assert_eq!(SelectedSender::first(2, UnixMillis(5), Some(UnixMillis(5))), None);
        let mut selected = SelectedSender::first(2, UnixMillis(9), Some(UnixMillis(5)));
        assert!(
            !take(&mut selected, 1, 5) && take(&mut selected, 1, 7) && !take(&mut selected, 1, 9)
        );
    }

    proptest! {
        /// Two senders send all samples of a time line, each in order, interleaved at random.
        #[test]
        fn every_sample_counts_at_most_once_and_one_senders_all_when_it_alone_sends(
            turns in prop::collection::vec(any::<bool>(), 1..200), shift in 0..STEP
        ) {
            let mut selected = None;
            let mut next = [0_i64; 2];
            let mut counted: BTreeMap<i64, u32> = BTreeMap::new();
            let mut switches = 0;
            let mut previous_turn = None;
            for turn in turns.iter().map(|turn| usize::from(*turn)) {
                let step = next[turn];
                next[turn] += 1;
                if take(&mut selected, turn as u64 + 1, step * STEP + turn as i64 * shift) {
                    *counted.entry(step).or_default() += 1;
                    switches += u32::from(previous_turn.is_some_and(|previous| previous != turn));
                    previous_turn = Some(turn);
                }
            }
            // Where one sender follows the other, one step may be counted from both.
            let twice = counted.values().filter(|count| **count > 1).count() as u32;
            prop_assert!(twice <= switches, "{counted:?}");
            let alone = turns.iter().all(|turn| *turn == turns[0]);
            prop_assert!(!alone || counted.len() == turns.len());
            prop_assert!(counted.values().all(|count| *count <= 2));
        }
    }
}
