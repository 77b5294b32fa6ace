//! Which partitions are past their retention: none, while the time is doubted.

use crate::model::{Granularity, Moment, UnixMillis};

/// Whether a partition that ends at `end` is to be dropped at `now`: when no time in it is kept.
pub fn is_expired(granularity: &Granularity, end: UnixMillis, now: impl Into<Moment>) -> bool {
    let now = now.into();
    !now.is_doubted() && !granularity.keeps(end.minus(1), now.clock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GranularitySet;

    #[test]
    fn a_partition_goes_when_its_last_sample_is_past_retention() {
        let set = GranularitySet::default();
        let [minute, five] = [0, 1].map(|index: usize| &set.as_slice()[index]);
        let hour = 3_600_000;
        let start = UnixMillis(1_763_683_200_000); // 2025-11-21T00:00Z
        let end = start.plus(6 * hour);
        let last_moment = end.plus(48 * hour - 1);
        assert!(!is_expired(minute, end, last_moment));
        assert!(is_expired(minute, end, last_moment.plus(1)));
        assert!(!is_expired(five, start.plus(24 * hour), last_moment.plus(1)));
        let doubted = Moment { clock: last_moment.plus(1), believed: start };
        assert!(!is_expired(minute, end, doubted));
        // Shorter than a partition is by now: it is kept as long as one would be.
        assert!(!is_expired(minute, start.plus(hour), last_moment));
    }
}
