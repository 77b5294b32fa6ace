//! A set of series, with a bit for each: 64 neighbouring series share a row.

use std::collections::BTreeMap;

use crate::{
    model::SeriesId,
    store::encoding::lanes::{SERIES_PER_ROW, row_and_lane, series_at},
};

/// A set of series.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeriesSet(BTreeMap<u32, u64>);

impl SeriesSet {
    /// Creates a set of series.
    pub fn of(series: impl IntoIterator<Item = SeriesId>) -> Self {
        let mut set = Self::default();
        series.into_iter().for_each(|series| set.insert(series));
        set
    }

    /// Adds a series.
    pub(crate) fn insert(&mut self, series: SeriesId) {
        let (row, lane) = row_and_lane(series);
        *self.0.entry(row).or_default() |= 1 << lane;
    }

    /// Adds all series of another set.
    pub fn extend(&mut self, other: Self) {
        for (row, bits) in other.0 {
            *self.0.entry(row).or_default() |= bits;
        }
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.0.len()
    }

    /// Returns the series, ascending.
    pub fn iter(&self) -> impl Iterator<Item = SeriesId> {
        self.0.iter().flat_map(|(row, bits)| {
            let is_set = move |lane: &usize| bits & (1 << lane) != 0;
            (0..SERIES_PER_ROW).filter(is_set).map(|lane| series_at(*row, lane))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_has_the_series_that_were_added(
            ids in prop::collection::vec(0..500_u32, 0..40), more in prop::collection::vec(0..500_u32, 0..40),
        ) {
            let mut set = SeriesSet::of(ids.iter().copied().map(SeriesId));
            set.extend(SeriesSet::of(more.iter().copied().map(SeriesId)));
            let expected: BTreeSet<_> = ids.into_iter().chain(more).collect();
            let rows: BTreeSet<_> = expected.iter().map(|id| id / 64).collect();
            prop_assert_eq!(set.rows(), rows.len());
            prop_assert_eq!(set.iter().map(|id| id.0).collect::<Vec<_>>(), Vec::from_iter(expected));
        }
    }
}
