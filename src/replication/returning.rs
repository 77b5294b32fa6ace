//! The hand-overs of a shard that returns, because its preferred member does not take it.

/// The first time for which a shard stays that returned after a hand-over; it doubles.
pub const RETURNED_MS: u64 = 60_000;
/// The longest time for which a returned shard stays.
pub const RETURNED_MS_MAX: u64 = 4 * 3_600_000;

/// The hand-overs of a shard: one that returns stays for a while, longer each time, as its
/// preferred member cannot take it.
#[derive(Debug, Default, Clone)]
pub struct HandOvers {
    /// The epoch and the time of the last one.
    last: Option<(u64, u64)>,
    delay_ms: u64,
}

impl HandOvers {
    /// Returns true if the holder of an epoch can hand over now, and notes it.
    pub fn note(&mut self, epoch: u64, now_ms: u64) -> bool {
        let Some((last_epoch, last_ms)) = self.last else {
            (self.last, self.delay_ms) = (Some((epoch, now_ms)), RETURNED_MS);
            return true;
        };
        let since_ms = now_ms.saturating_sub(last_ms);
        if last_epoch == epoch || since_ms < self.delay_ms {
            return last_epoch == epoch;
        }
        let has_returned = since_ms < 2 * self.delay_ms;
        let delay_ms = if has_returned { 2 * self.delay_ms } else { RETURNED_MS };
        (self.last, self.delay_ms) = (Some((epoch, now_ms)), delay_ms.min(RETURNED_MS_MAX));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_whose_preferred_member_never_takes_it_is_handed_over_ever_less() {
        let (mut hand_overs, mut epoch, mut times) = (HandOvers::default(), 1, Vec::new());
        for second in 0..86_400 {
            if hand_overs.note(epoch, second * 1000) {
                // The shard returns in an epoch of its own.
                epoch += 1;
                times.push(second);
            }
        }
        assert_eq!(times[..5], [0, 60, 180, 420, 900]);
        assert!(times.len() < 15, "{times:?}");
        assert!(hand_overs.note(epoch - 1, 86_400_000), "the same hand-over goes on");
        // A shard that stayed away returned for another reason.
        assert!(hand_overs.note(epoch, 200_000_000) && !hand_overs.note(epoch + 1, 200_059_999));
        assert!(hand_overs.note(epoch + 1, 200_060_000));
    }
}
