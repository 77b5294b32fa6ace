//! Sets of times: disjoint ranges in ascending order.
//!
//! Must never know: the meaning of the times.

use std::ops::Range;

use crate::model::UnixMillis;

/// A set of times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Times(Vec<Range<UnixMillis>>);

impl Times {
    /// Returns a set of one range.
    pub(super) fn one(range: Range<UnixMillis>) -> Self {
        Self::new(std::iter::once(range))
    }

    pub(super) fn new(ranges: impl IntoIterator<Item = Range<UnixMillis>>) -> Self {
        let mut all: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        all.sort_by_key(|range| range.start);
        let mut joined: Vec<Range<UnixMillis>> = Vec::with_capacity(all.len());
        for next in all {
            match joined.last_mut() {
                Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
                _ => joined.push(next),
            }
        }
        Self(joined)
    }

    pub(super) fn ranges(&self) -> &[Range<UnixMillis>] {
        &self.0
    }

    /// Returns true when the set contains the whole range.
    pub(super) fn covers(&self, range: &Range<UnixMillis>) -> bool {
        let contains =
            |part: &Range<UnixMillis>| part.start <= range.start && range.end <= part.end;
        range.is_empty() || self.0.iter().any(contains)
    }

    pub(super) fn within(&self, other: &Self) -> Self {
        let both = |part: &Range<UnixMillis>, other: &Range<UnixMillis>| {
            part.start.max(other.start)..part.end.min(other.end)
        };
        Self::new(self.0.iter().flat_map(|part| other.0.iter().map(move |other| both(part, other))))
    }

    /// Returns the times of both sets.
    pub(super) fn with(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(&other.0).cloned())
    }

    pub(super) fn without(&self, other: &Self) -> Self {
        let ends = other.0.iter().map(|range| range.end);
        let starts = other.0.iter().map(|range| range.start);
        let (first, last) = (UnixMillis::EARLIEST, UnixMillis::LATEST);
        let between = std::iter::once(first).chain(ends).zip(starts.chain([last]));
        self.within(&Self::new(between.map(|(from, to)| from..to)))
    }

    /// Returns all slots of a width that overlap the set.
    pub(super) fn widened(&self, width_ms: i64) -> Self {
        Self::new(
            self.0.iter().map(|range| floor(range.start, width_ms)..ceil(range.end, width_ms)),
        )
    }

    /// Returns the slots of a width that the set contains completely.
    pub(super) fn shrunk(&self, width_ms: i64) -> Self {
        Self::new(
            self.0.iter().map(|range| ceil(range.start, width_ms)..floor(range.end, width_ms)),
        )
    }
}

/// Returns the last slot boundary at or before a time; `LATEST` stays as it is.
pub(super) fn floor(at: UnixMillis, width_ms: i64) -> UnixMillis {
    let floor = || UnixMillis(at.0.div_euclid(width_ms).saturating_mul(width_ms));
    if at == UnixMillis::LATEST { at } else { floor() }
}

/// Returns the first slot boundary at or after a time.
pub(super) fn ceil(at: UnixMillis, width_ms: i64) -> UnixMillis {
    let floor = floor(at, width_ms);
    if floor == at { at } else { floor.plus(width_ms) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn ranges() -> impl Strategy<Value = Vec<Range<UnixMillis>>> {
        let of_length = |(at, len)| range(at, at + len);
        prop::collection::vec((-40..40_i64, 0..15_i64).prop_map(of_length), 0..6)
    }

    fn range(from: i64, to: i64) -> Range<UnixMillis> {
        UnixMillis(from)..UnixMillis(to)
    }

    fn plain(times: &Times) -> BTreeSet<i64> {
        times.0.iter().flat_map(|range| range.start.0..range.end.0).collect()
    }

    proptest! {
        #[test]
        fn sets_agree_with_sets_of_single_times(
            a in ranges(), b in ranges(), width in 1..9_i64, asked in (-50..50_i64, 0..9_i64)
        ) {
            let (a, b) = (Times::new(a), Times::new(b));
            let (times_of_a, times_of_b) = (plain(&a), plain(&b));
            let slot = |at: i64| {
                let start = floor(UnixMillis(at), width).0;
                (start..start + width).collect::<Vec<_>>()
            };
            prop_assert_eq!(plain(&a.within(&b)), &times_of_a & &times_of_b);
            prop_assert_eq!(plain(&a.with(&b)), &times_of_a | &times_of_b);
            prop_assert_eq!(plain(&a.without(&b)), &times_of_a - &times_of_b);
            let widened: BTreeSet<i64> = times_of_a.iter().flat_map(|at| slot(*at)).collect();
            prop_assert_eq!(plain(&a.widened(width)), widened);
            let whole = times_of_a.iter().copied().filter(|at| slot(*at).iter().all(|at| times_of_a.contains(at)));
            prop_assert_eq!(plain(&a.shrunk(width)), whole.collect::<BTreeSet<_>>());
            let mut probed = asked.0..asked.0 + asked.1;
            let covered = a.covers(&range(probed.start, probed.end));
            prop_assert_eq!(covered, probed.all(|at| times_of_a.contains(&at)));
            for pair in a.0.windows(2) {
                prop_assert!(pair[0].end < pair[1].start);
            }
        }
    }

    #[test]
    fn a_range_without_an_end_stays_without_an_end() {
        let times = |from, to| Times::one(range(from, to));
        let endless = times(7, i64::MAX);
        assert_eq!(endless.shrunk(5), times(10, i64::MAX));
        assert_eq!(endless.widened(5), times(5, i64::MAX));
        assert_eq!(times(i64::MIN, i64::MAX).without(&endless), times(i64::MIN, 7));
    }
}
