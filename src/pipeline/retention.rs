//! Which partitions are past their retention: none, while the time is doubted.

use crate::model::{GranularitySet, Moment, UnixMillis};

/// The partitions, given as level and start, that are to be dropped at `now`.
pub fn expired(
    granularities: &GranularitySet,
    partitions: impl IntoIterator<Item = (usize, UnixMillis)>,
    now: impl Into<Moment>,
) -> Vec<(usize, UnixMillis)> {
    let now = now.into();
    if now.is_doubted() {
        return Vec::new();
    }
    let keeps = |(level, start): &(usize, UnixMillis)| {
        granularities.levels()[*level].keeps_partition(*start, now.clock)
    };
    partitions.into_iter().filter(|partition| !keeps(partition)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_goes_when_its_last_sample_is_past_retention() {
        let set = GranularitySet::default();
        let hour = 3_600_000;
        let start = UnixMillis(1_763_683_200_000); // 2025-11-21T00:00Z
        let last_moment = start.plus(6 * hour + 48 * hour - 1);
        assert_eq!(expired(&set, [(0, start)], last_moment), []);
        assert_eq!(expired(&set, [(0, start)], last_moment.plus(1)), [(0, start)]);
        assert_eq!(expired(&set, [(1, start)], last_moment.plus(1)), []);
        let doubted = Moment { clock: last_moment.plus(1), believed: start };
        assert_eq!(expired(&set, [(0, start)], doubted), []);
    }
}
