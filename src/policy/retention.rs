//! Retention: the partitions that have expired. No partition expires while the clock is doubted.
//! `budget` selects the partitions that are dropped earlier, because the disk is too small.

pub mod budget;

use crate::model::{Granularity, Moment, UnixMillis};

/// Returns true when the whole partition that ends at `end` is past its retention at `now`.
pub fn is_expired(granularity: &Granularity, end: UnixMillis, now: impl Into<Moment>) -> bool {
    let now = now.into();
    !now.is_doubted() && !granularity.keeps(end.minus(1), now.clock)
}

/// Returns the time at which a partition that ends at `end` expires, provided that the clock is not
/// doubted.
pub fn dropped_at(granularity: &Granularity, end: UnixMillis) -> UnixMillis {
    let longest =
        granularity.retention().longest_ms().saturating_add(granularity.partition.longest_ms());
    let (mut before, mut at) = (end.minus(1), end.plus(longest));
    while at.0 - before.0 > 1 {
        let middle = UnixMillis(i64::midpoint(before.0, at.0));
        if is_expired(granularity, end, middle) { at = middle } else { before = middle }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GranularitySet, Span};

    #[test]
    fn a_partition_expires_when_its_last_sample_is_past_retention() {
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
        // A partition that is shorter than the current setting is kept as long as one of the
        // current length.
        assert!(!is_expired(minute, start.plus(hour), last_moment));
    }

    #[test]
    fn a_partition_is_dropped_at_the_first_time_at_which_it_is_expired() {
        let set = GranularitySet::default();
        let years = Granularity::new(
            3_600_000,
            Span::Fixed(24 * 3_600_000),
            Span::Months(1),
            Span::Months(13),
        );
        let start = UnixMillis(1_763_683_200_000); // 2025-11-21T00:00Z
        for granularity in set.as_slice().iter().chain([&years]) {
            let begin = granularity.partition_start(start);
            // Partitions of the current length, and shorter ones of earlier settings.
            for end in [granularity.partition_end(begin), start.plus(3_600_000), begin.plus(60_000)]
            {
                let at = dropped_at(granularity, end);
                assert!(is_expired(granularity, end, at), "{} {end}", granularity.name);
                assert!(!is_expired(granularity, end, at.minus(1)), "{} {end}", granularity.name);
            }
        }
        let minute = &set.as_slice()[0];
        let end = start.plus(6 * 3_600_000);
        assert_eq!(dropped_at(minute, end), end.plus(48 * 3_600_000));
    }
}
