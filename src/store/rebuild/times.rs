//! Sets of times as disjoint ranges, ascending.
//!
//! Must never know: the meaning of the times.

use std::ops::Range;

use crate::model::UnixMillis;

/// A set of times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Times(Vec<Range<UnixMillis>>);

impl Times {
    /// Creates the set of all times in some ranges, which may overlap.
    pub(super) fn of(ranges: impl IntoIterator<Item = Range<UnixMillis>>) -> Self {
        let mut all: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        all.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<UnixMillis>> = Vec::with_capacity(all.len());
        for range in all {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        Self(joined)
    }

    /// Returns the ranges.
    pub(super) fn ranges(&self) -> &[Range<UnixMillis>] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the times that are also in a range.
    pub(super) fn within(&self, range: &Range<UnixMillis>) -> Self {
        let part = |own: &Range<UnixMillis>| own.start.max(range.start)..own.end.min(range.end);
        Self(self.0.iter().map(part).filter(|part| !part.is_empty()).collect())
    }

    /// Returns the times that are also in another set.
    pub(super) fn and(&self, other: &Self) -> Self {
        Self::of(other.0.iter().flat_map(|range| self.within(range).0))
    }

    /// Returns the times that are not in another set.
    pub(super) fn without(&self, other: &Self) -> Self {
        let mut rest = Vec::new();
        for range in &self.0 {
            let mut from = range.start;
            for gap in other.within(range).0 {
                rest.push(from..gap.start);
                from = gap.end;
            }
            rest.push(from..range.end);
        }
        Self::of(rest)
    }

    /// Returns the whole slots that contain any of the times.
    pub(super) fn widened(&self, width_ms: i64) -> Self {
        let floor = |at: UnixMillis| at.0.div_euclid(width_ms).saturating_mul(width_ms);
        let slots = |range: &Range<UnixMillis>| {
            let last = floor(range.end.minus(1)).saturating_add(width_ms);
            UnixMillis(floor(range.start))..UnixMillis(last)
        };
        Self::of(self.0.iter().map(slots))
    }

    /// Returns the whole slots all of whose times are in the set.
    pub(super) fn narrowed(&self, width_ms: i64) -> Self {
        let floor = |at: i64| at.div_euclid(width_ms).saturating_mul(width_ms);
        let slots = |range: &Range<UnixMillis>| {
            let first = floor(range.start.0.saturating_add(width_ms - 1));
            UnixMillis(first)..UnixMillis(floor(range.end.0))
        };
        Self::of(self.0.iter().map(slots))
    }

    /// Returns whether a time is in the set.
    pub(super) fn has(&self, at: UnixMillis) -> bool {
        let after = self.0.partition_point(|range| range.start <= at);
        after > 0 && at < self.0[after - 1].end
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn times() -> impl Strategy<Value = Times> {
        let range = (0_i64..60, 0_i64..12)
            .prop_map(|(start, length)| UnixMillis(start)..UnixMillis(start + length));
        prop::collection::vec(range, 0..6).prop_map(Times::of)
    }

    fn all(times: &Times) -> BTreeSet<i64> {
        (-10..100).filter(|at| times.has(UnixMillis(*at))).collect()
    }

    proptest! {
        #[test]
        fn sets_of_times_are_sets(one in times(), other in times()) {
            let (in_one, in_other) = (all(&one), all(&other));
            prop_assert_eq!(all(&one.and(&other)), &in_one & &in_other);
            prop_assert_eq!(all(&one.without(&other)), &in_one - &in_other);
            let slot = |at: i64| at.div_euclid(5);
            let touched: BTreeSet<_> = in_one.iter().map(|at| slot(*at)).collect();
            let wide: BTreeSet<_> = (-10..100).filter(|at| touched.contains(&slot(*at))).collect();
            prop_assert_eq!(all(&one.widened(5)), wide);
            let is_whole = |at: &i64| (0..5).all(|i| in_one.contains(&(slot(*at) * 5 + i)));
            let whole: BTreeSet<_> = (-10..100).filter(is_whole).collect();
            prop_assert_eq!(all(&one.narrowed(5)), whole);
        }
    }
}
