//! Which granularity is the finest that keeps a time, at one moment.

use super::{GranularitySet, UnixMillis};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeping {
    /// Since when each level keeps samples, finest first.
    since: Vec<UnixMillis>,
}

impl Keeping {
    /// As of `now`.
    pub fn new(levels: &GranularitySet, now: UnixMillis) -> Self {
        Self { since: levels.levels().iter().map(|level| level.kept_since(now)).collect() }
    }

    /// Index of the finest level that keeps samples of time `at`; `None` when none does.
    pub fn finest(&self, at: UnixMillis) -> Option<usize> {
        self.since.iter().position(|since| at >= *since)
    }

    /// For later times than `at` the answer is the same up to here, exclusive.
    pub fn same_until(&self, at: UnixMillis) -> UnixMillis {
        let later = self.since.iter().copied().filter(|since| *since > at);
        later.min().unwrap_or(UnixMillis(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_answer_is_that_of_the_levels_and_stays_the_same_until_it_changes(
            age in 0..200_000_000_000_i64, later in 0..400_000_000_i64
        ) {
            let (set, now) = (GranularitySet::default(), UnixMillis(1_795_264_496_000));
            let keeping = Keeping::new(&set, now);
            let at = now.minus(age);
            prop_assert_eq!(keeping.finest(at), set.finest_keeping(at, now));
            let until = keeping.same_until(at);
            let later = at.plus(later);
            prop_assert!(later >= until || keeping.finest(later) == keeping.finest(at));
            let is_last = until.0 == i64::MAX;
            prop_assert!(is_last || keeping.finest(until) != keeping.finest(at) || age == 0);
        }
    }
}
