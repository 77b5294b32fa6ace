//! The finest granularity that keeps samples of a time, as of one moment.
//!
//! Must never know: the stored data.

use super::{GranularityIndex, GranularitySet, UnixMillis};

/// The start of each granularity's retention, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionStarts {
    /// The time from which each granularity keeps samples, finest first.
    since: Vec<UnixMillis>,
}

impl RetentionStarts {
    /// Returns the state as of `now`.
    pub fn new(granularities: &GranularitySet, now: UnixMillis) -> Self {
        Self {
            since: granularities.iter().map(|granularity| granularity.kept_since(now)).collect(),
        }
    }

    /// Returns the finest granularity that keeps samples of time `at`; `None` if none does.
    pub fn finest(&self, at: UnixMillis) -> Option<GranularityIndex> {
        self.since.iter().position(|since| at >= *since).map(GranularityIndex)
    }

    /// Returns the end, exclusive, of the times from `at` on that have the same finest granularity.
    pub fn same_until(&self, at: UnixMillis) -> UnixMillis {
        let later = self.since.iter().copied().filter(|since| *since > at);
        later.min().unwrap_or(UnixMillis::LATEST)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_times::NOW;

    proptest! {
        #[test]
        fn the_finest_granularity_is_that_of_the_set_and_does_not_change_before_same_until(
            age in 0..200_000_000_000_i64, later in 0..400_000_000_i64
        ) {
            let (set, now) = (GranularitySet::default(), NOW);
            let starts = RetentionStarts::new(&set, now);
            let at = now.minus(age);
            prop_assert_eq!(starts.finest(at), set.finest_keeping(at, now));
            let until = starts.same_until(at);
            let later = at.plus(later);
            prop_assert!(later >= until || starts.finest(later) == starts.finest(at));
            let is_last = until.0 == i64::MAX;
            prop_assert!(is_last || starts.finest(until) != starts.finest(at) || age == 0);
        }
    }
}
