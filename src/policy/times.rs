//! Sets of times: disjoint stretches, ascending.
//!
//! Must never know: what happens then.

use std::ops::Range;

/// A set of Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Times(Vec<Range<i64>>);

impl Times {
    /// One stretch.
    pub(super) fn one(stretch: Range<i64>) -> Self {
        Self::new(std::iter::once(stretch))
    }

    pub(super) fn new(stretches: impl IntoIterator<Item = Range<i64>>) -> Self {
        let mut all: Vec<_> = stretches.into_iter().filter(|own| !own.is_empty()).collect();
        all.sort_by_key(|own| own.start);
        let mut joined: Vec<Range<i64>> = Vec::with_capacity(all.len());
        for next in all {
            match joined.last_mut() {
                Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
                _ => joined.push(next),
            }
        }
        Self(joined)
    }

    pub(super) fn stretches(&self) -> &[Range<i64>] {
        &self.0
    }

    /// Whether all of a range is in the set.
    pub(super) fn covers(&self, range: &Range<i64>) -> bool {
        let holds = |own: &Range<i64>| own.start <= range.start && range.end <= own.end;
        range.is_empty() || self.0.iter().any(holds)
    }

    pub(super) fn within(&self, other: &Self) -> Self {
        let both = |own: &Range<i64>, other: &Range<i64>| {
            own.start.max(other.start)..own.end.min(other.end)
        };
        Self::new(self.0.iter().flat_map(|own| other.0.iter().map(move |other| both(own, other))))
    }

    pub(super) fn without(&self, other: &Self) -> Self {
        let ends = other.0.iter().map(|own| own.end);
        let starts = other.0.iter().map(|own| own.start);
        let between = std::iter::once(i64::MIN).chain(ends).zip(starts.chain([i64::MAX]));
        self.within(&Self::new(between.map(|(from, to)| from..to)))
    }

    /// All slots of a width that are in the set, wholly or in part.
    pub(super) fn widened(&self, width: i64) -> Self {
        Self::new(self.0.iter().map(|own| floor(own.start, width)..ceil(own.end, width)))
    }

    /// The slots of a width that are wholly in the set.
    pub(super) fn shrunk(&self, width: i64) -> Self {
        Self::new(self.0.iter().map(|own| ceil(own.start, width)..floor(own.end, width)))
    }
}

/// The last border of slots at or before a time; times that never come stay.
pub(super) fn floor(at: i64, width: i64) -> i64 {
    if at == i64::MAX { at } else { at.div_euclid(width).saturating_mul(width) }
}

/// The first border of slots at or after a time.
pub(super) fn ceil(at: i64, width: i64) -> i64 {
    let floor = floor(at, width);
    if floor == at { at } else { floor.saturating_add(width) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn stretches() -> impl Strategy<Value = Vec<Range<i64>>> {
        prop::collection::vec((-40..40_i64, 0..15_i64).prop_map(|(at, len)| at..at + len), 0..6)
    }

    fn plain(times: &Times) -> BTreeSet<i64> {
        times.0.iter().cloned().flatten().collect()
    }

    proptest! {
        #[test]
        fn sets_are_as_those_of_single_times(
            a in stretches(), b in stretches(), width in 1..9_i64, range in (-50..50_i64, 0..9_i64)
        ) {
            let (a, b) = (Times::new(a), Times::new(b));
            let (own, other) = (plain(&a), plain(&b));
            let slot = |at: i64| (floor(at, width)..floor(at, width) + width).collect::<Vec<_>>();
            prop_assert_eq!(plain(&a.within(&b)), &own & &other);
            prop_assert_eq!(plain(&a.without(&b)), &own - &other);
            let widened: BTreeSet<i64> = own.iter().flat_map(|at| slot(*at)).collect();
            prop_assert_eq!(plain(&a.widened(width)), widened);
            let whole = own.iter().copied().filter(|at| slot(*at).iter().all(|at| own.contains(at)));
            prop_assert_eq!(plain(&a.shrunk(width)), whole.collect::<BTreeSet<_>>());
            let range = range.0..range.0 + range.1;
            prop_assert_eq!(a.covers(&range), range.clone().all(|at| own.contains(&at)));
            for pair in a.0.windows(2) {
                prop_assert!(pair[0].end < pair[1].start);
            }
        }
    }

    #[test]
    fn what_never_ends_stays_so() {
        let ever = Times::one(7..i64::MAX);
        assert_eq!(ever.shrunk(5), Times::one(10..i64::MAX));
        assert_eq!(ever.widened(5), Times::one(5..i64::MAX));
        assert_eq!(Times::one(i64::MIN..i64::MAX).without(&ever), Times::one(i64::MIN..7));
    }
}
