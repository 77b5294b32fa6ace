//! Sets of times: disjoint ranges in ascending order.
//!
//! Must never know: what the times are for.

use std::ops::Range;

use crate::model::UnixMillis;

/// A set of times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Times(Vec<Range<UnixMillis>>);

impl Times {
    /// One stretch.
    pub(super) fn one(stretch: Range<UnixMillis>) -> Self {
        Self::new(std::iter::once(stretch))
    }

    pub(super) fn new(stretches: impl IntoIterator<Item = Range<UnixMillis>>) -> Self {
        let mut all: Vec<_> = stretches.into_iter().filter(|own| !own.is_empty()).collect();
        all.sort_by_key(|own| own.start);
        let mut joined: Vec<Range<UnixMillis>> = Vec::with_capacity(all.len());
        for next in all {
            match joined.last_mut() {
                Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
                _ => joined.push(next),
            }
        }
        Self(joined)
    }

    pub(super) fn stretches(&self) -> &[Range<UnixMillis>] {
        &self.0
    }

    /// Returns whether the set contains a whole range.
    pub(super) fn covers(&self, range: &Range<UnixMillis>) -> bool {
        let holds = |own: &Range<UnixMillis>| own.start <= range.start && range.end <= own.end;
        range.is_empty() || self.0.iter().any(holds)
    }

    pub(super) fn within(&self, other: &Self) -> Self {
        let both = |own: &Range<UnixMillis>, other: &Range<UnixMillis>| {
            own.start.max(other.start)..own.end.min(other.end)
        };
        Self::new(self.0.iter().flat_map(|own| other.0.iter().map(move |other| both(own, other))))
    }

    pub(super) fn without(&self, other: &Self) -> Self {
        let ends = other.0.iter().map(|own| own.end);
        let starts = other.0.iter().map(|own| own.start);
        let (first, last) = (UnixMillis::EARLIEST, UnixMillis::LATEST);
        let between = std::iter::once(first).chain(ends).zip(starts.chain([last]));
        self.within(&Self::new(between.map(|(from, to)| from..to)))
    }

    /// All slots of a width that the set contains, wholly or in part.
    pub(super) fn widened(&self, width_ms: i64) -> Self {
        Self::new(self.0.iter().map(|own| floor(own.start, width_ms)..ceil(own.end, width_ms)))
    }

    /// The slots of a width that are wholly in the set.
    pub(super) fn shrunk(&self, width_ms: i64) -> Self {
        Self::new(self.0.iter().map(|own| ceil(own.start, width_ms)..floor(own.end, width_ms)))
    }
}

/// The last border of slots at or before a time. The extreme times have no slots and stay.
pub(super) fn floor(at: UnixMillis, width_ms: i64) -> UnixMillis {
    let floor = || UnixMillis(at.0.div_euclid(width_ms).saturating_mul(width_ms));
    if at == UnixMillis::LATEST { at } else { floor() }
}

/// The first border of slots at or after a time.
pub(super) fn ceil(at: UnixMillis, width_ms: i64) -> UnixMillis {
    let floor = floor(at, width_ms);
    if floor == at { at } else { floor.plus(width_ms) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn stretches() -> impl Strategy<Value = Vec<Range<UnixMillis>>> {
        let stretch = |(at, len)| range(at, at + len);
        prop::collection::vec((-40..40_i64, 0..15_i64).prop_map(stretch), 0..6)
    }

    fn range(from: i64, to: i64) -> Range<UnixMillis> {
        UnixMillis(from)..UnixMillis(to)
    }

    fn plain(times: &Times) -> BTreeSet<i64> {
        times.0.iter().flat_map(|own| own.start.0..own.end.0).collect()
    }

    proptest! {
        #[test]
        fn sets_are_as_those_of_single_times(
            a in stretches(), b in stretches(), width in 1..9_i64, asked in (-50..50_i64, 0..9_i64)
        ) {
            let (a, b) = (Times::new(a), Times::new(b));
            let (own, other) = (plain(&a), plain(&b));
            let slot = |at: i64| {
                let start = floor(UnixMillis(at), width).0;
                (start..start + width).collect::<Vec<_>>()
            };
            prop_assert_eq!(plain(&a.within(&b)), &own & &other);
            prop_assert_eq!(plain(&a.without(&b)), &own - &other);
            let widened: BTreeSet<i64> = own.iter().flat_map(|at| slot(*at)).collect();
            prop_assert_eq!(plain(&a.widened(width)), widened);
            let whole = own.iter().copied().filter(|at| slot(*at).iter().all(|at| own.contains(at)));
            prop_assert_eq!(plain(&a.shrunk(width)), whole.collect::<BTreeSet<_>>());
            let mut times = asked.0..asked.0 + asked.1;
            let covered = a.covers(&range(times.start, times.end));
            prop_assert_eq!(covered, times.all(|at| own.contains(&at)));
            for pair in a.0.windows(2) {
                prop_assert!(pair[0].end < pair[1].start);
            }
        }
    }

    #[test]
    fn what_never_ends_stays_so() {
        let times = |from, to| Times::one(range(from, to));
        let ever = times(7, i64::MAX);
        assert_eq!(ever.shrunk(5), times(10, i64::MAX));
        assert_eq!(ever.widened(5), times(5, i64::MAX));
        assert_eq!(times(i64::MIN, i64::MAX).without(&ever), times(i64::MIN, 7));
    }
}
