//! The lease of a holder, and the watch of the other members over it.
//!
//! A holder answers queries while its last confirmed renewal was sent less than TTL minus a margin
//! ago. Another member takes the shard after a TTL in which it saw no renewal, and only if there is
//! still none at that moment. Clocks need not agree: each node measures elapsed time itself, and
//! the margin covers clocks that run at different speeds.

use crate::replication::{
    entry::{STOPPED, ShardRow},
    mutants::{Mutant, is_on},
};

/// Intervals of the roles, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// The interval between renewals of a lease.
    pub beat_ms: u64,
    /// The time without a renewal after which another member takes a shard.
    pub ttl_ms: u64,
    /// The time before the end of the TTL at which a holder stops answering.
    pub margin_ms: u64,
    /// The interval between a follower's searches for entries.
    pub follow_ms: u64,
    /// The interval between a follower's reads of the shard's row.
    pub watch_ms: u64,
    /// The interval between cuts.
    pub cut_ms: u64,
    /// The first delay after a fault; it doubles up to `retry_max_ms`.
    pub retry_ms: u64,
    /// The longest delay after a fault.
    pub retry_max_ms: u64,
    /// The delay of a take for each member that is preferred.
    pub rank_ms: u64,
    /// The time after which a member that holds back the log is struck.
    pub strike_ms: u64,
    /// The bytes of the log after which a member that holds them back is struck.
    pub strike_bytes: u64,
    /// The time after which a member that waits for a copy of the replica is struck.
    pub copy_ms: u64,
    /// The bytes of the log after which a member that waits for a copy is struck.
    pub copy_bytes: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            beat_ms: 1000,
            ttl_ms: 5000,
            // Clocks that differ in speed by a fifth are still safe; those of machines differ by less
            // than a thousandth.
            margin_ms: 1000,
            follow_ms: 250,
            watch_ms: 500,
            cut_ms: 10_000,
            retry_ms: 100,
            retry_max_ms: 2000,
            rank_ms: 300,
            strike_ms: 3_600_000,
            strike_bytes: 4 << 30,
            copy_ms: 6 * 3_600_000,
            copy_bytes: 32 << 30,
        }
    }
}

/// A holder's knowledge of its lease.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// The time at which the last renewal was sent.
    sent_ms: u64,
    /// True if that was the end of the lease.
    stops: bool,
    /// The time at which the last confirmed renewal was sent.
    confirmed_ms: Option<u64>,
    /// The number of confirmed renewals.
    confirmed: i64,
}

impl Lease {
    pub(crate) fn note_sent(&mut self, now_ms: u64, stops: bool) {
        (self.sent_ms, self.stops) = (now_ms, stops);
    }

    /// Returns the least beat that the row has.
    pub(crate) fn least_beat(&self) -> i64 {
        self.confirmed
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stops
    }

    pub(crate) fn note_confirmed(&mut self, now_ms: u64) {
        let counts_from = if is_on(Mutant::LeaseFromAnswer) { now_ms } else { self.sent_ms };
        self.confirmed_ms = Some(counts_from);
        self.confirmed += 1;
    }

    /// Returns the time before which no other node can have taken the shard.
    pub(crate) fn until_ms(&self, timing: &Timing) -> Option<u64> {
        let margin_ms = if is_on(Mutant::NoMargin) { 0 } else { timing.margin_ms };
        self.confirmed_ms.map(|sent_ms| sent_ms + timing.ttl_ms - margin_ms)
    }

    /// Returns true while no other node can have taken the shard.
    #[cfg(test)]
    pub(crate) fn is_valid(&self, now_ms: u64, timing: &Timing) -> bool {
        self.until_ms(timing).is_some_and(|until_ms| now_ms < until_ms)
    }
}

/// A member's observation of the holder's renewals.
///
/// Only the time between two successful reads counts, and only up to three read intervals between
/// them: while MongoDB is unreachable, no holder can renew, and all leases look dead.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    seen: Option<(u64, i64)>,
    quiet_ms: u64,
    /// The time up to which the quiet time counts: that of the answer that showed the renewal, then
    /// that at which the last successful read was sent.
    counted_ms: Option<u64>,
}

impl Watch {
    /// Notes a read of the row, sent and answered at these times.
    pub(crate) fn note(&mut self, row: &ShardRow, sent_ms: u64, now_ms: u64, timing: &Timing) {
        let seen = Some((row.epoch, row.beat));
        if self.seen == seen {
            self.quiet_ms += self.uncounted_ms(sent_ms, timing);
            self.counted_ms = Some(sent_ms);
        } else {
            (self.seen, self.quiet_ms, self.counted_ms) = (seen, 0, Some(now_ms));
        }
    }

    /// Returns the quiet time that a successful read at this time would add.
    fn uncounted_ms(&self, sent_ms: u64, timing: &Timing) -> u64 {
        let since_ms = self.counted_ms.map_or(0, |counted| sent_ms.saturating_sub(counted));
        if since_ms <= 3 * timing.watch_ms { since_ms } else { 0 }
    }

    /// Notes that a read failed: the time until the next successful one does not count.
    pub(crate) fn note_fault(&mut self) {
        self.counted_ms = None;
    }

    /// Returns true if the shard has no holder, or lacked a renewal for a TTL. `rank` is the number
    /// of members that are preferred.
    pub(crate) fn is_free(&self, rank: u32, timing: &Timing) -> bool {
        self.lacking_ms(rank, timing) == Some(0)
    }

    /// Returns the quiet time after which the shard is free; `None` before the first read.
    fn lacking_ms(&self, rank: u32, timing: &Timing) -> Option<u64> {
        let (epoch, beat) = self.seen?;
        let ttl_ms = if epoch == 0 || beat == STOPPED { 0 } else { timing.ttl_ms };
        let delay_ms = u64::from(rank) * timing.rank_ms;
        Some((ttl_ms + delay_ms).saturating_sub(self.quiet_ms))
    }

    /// Returns the time until a read without a renewal makes the shard free. It is zero when a read
    /// at `now_ms` would, and `None` when it is free, or before the first read.
    pub(crate) fn free_in_ms(&self, rank: u32, now_ms: u64, timing: &Timing) -> Option<u64> {
        let lacking_ms = self.lacking_ms(rank, timing).filter(|lacking_ms| *lacking_ms > 0)?;
        Some(lacking_ms.saturating_sub(self.uncounted_ms(now_ms, timing)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(epoch: u64, beat: i64) -> ShardRow {
        ShardRow { epoch, beat, ..ShardRow::default() }
    }

    #[test]
    fn a_lease_counts_from_the_sending_of_its_renewal() {
        let (mut lease, timing) = (Lease::default(), Timing::default());
        assert!(!lease.is_valid(0, &timing));
        lease.note_sent(1000, false);
        assert!(!lease.is_valid(1001, &timing));
        lease.note_confirmed(3000);
        assert!(lease.is_valid(4999, &timing) && !lease.is_valid(5000, &timing));
    }

    #[test]
    fn a_lease_is_dead_after_a_ttl_of_successful_reads() {
        let (mut watch, timing) = (Watch::default(), Timing::default());
        for second in 0..6 {
            assert!(!watch.is_free(0, &timing), "after {second} s");
            watch.note(&row(3, 7), second * 1000, second * 1000, &timing);
        }
        assert!(watch.is_free(0, &timing) && !watch.is_free(1, &timing));
        watch.note(&row(3, 8), 6000, 6000, &timing);
        assert!(!watch.is_free(0, &timing));
    }

    #[test]
    fn a_watch_tells_when_a_read_can_make_the_shard_free() {
        let (mut watch, timing) = (Watch::default(), Timing::default());
        assert_eq!(watch.free_in_ms(0, 0, &timing), None);
        // The quiet time begins with the answer that shows the renewal; later reads count as sent.
        watch.note(&row(3, 7), 0, 100, &timing);
        (1..5).for_each(|second| watch.note(&row(3, 7), second * 1000, second * 1500, &timing));
        assert_eq!(watch.free_in_ms(0, 4500, &timing), Some(600));
        assert_eq!(watch.free_in_ms(1, 4500, &timing), Some(600 + timing.rank_ms));
        assert_eq!(watch.free_in_ms(0, 5100, &timing), Some(0));
        watch.note(&row(3, 7), 5099, 5200, &timing);
        assert!(!watch.is_free(0, &timing));
        watch.note(&row(3, 7), 5300, 5400, &timing);
        assert!(watch.is_free(0, &timing));
        assert_eq!(watch.free_in_ms(0, 5400, &timing), None, "it is free");
    }

    #[test]
    fn an_outage_does_not_kill_a_lease() {
        let (mut watch, timing) = (Watch::default(), Timing::default());
        watch.note(&row(3, 7), 0, 0, &timing);
        watch.note_fault();
        watch.note(&row(3, 7), 60_000, 60_000, &timing);
        assert!(!watch.is_free(0, &timing));
        // A node that slept does not know whether the holder could renew.
        watch.note(&row(3, 7), 120_000, 120_000, &timing);
        assert!(!watch.is_free(0, &timing));
    }

    #[test]
    fn a_shard_without_a_holder_is_free_at_once_for_the_preferred_member() {
        let timing = Timing::default();
        for row in [row(0, 0), row(4, STOPPED)] {
            let mut watch = Watch::default();
            watch.note(&row, 0, 0, &timing);
            assert!(watch.is_free(0, &timing) && !watch.is_free(1, &timing));
            watch.note(&row, 300, 300, &timing);
            assert!(watch.is_free(1, &timing));
        }
    }
}
