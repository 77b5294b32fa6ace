//! The plan of nested documents: the granularity that they show, and the granularities whose slots
//! may fill them.
//!
//! Must never know: the store.

use std::ops::Range;

use jiff::tz::TimeZone;

use super::{NestedDocument, Nesting, SLOT_BYTES, nest};
use crate::{
    model::{Cell, GranularityIndex, GranularitySet, UnixMillis},
    query::{
        Budget, QueryError, Resolution, cells::axis::Axis, series::grouping::Group,
        time::resolution::granularity_of_width,
    },
};

/// A plan.
#[derive(Debug)]
pub(crate) struct NestedPlan<'a> {
    granularities: &'a GranularitySet,
    granularity: GranularityIndex,
    range: Range<UnixMillis>,
    nestings: Vec<Nesting>,
}

impl<'a> NestedPlan<'a> {
    /// Plans documents of a granularity that overlap a range.
    pub(crate) fn new(
        granularities: &'a GranularitySet,
        granularity: GranularityIndex,
        (range, zone): (Range<UnixMillis>, Option<&TimeZone>),
    ) -> Self {
        let range_ms = range.end.0.saturating_sub(range.start.0);
        let nesting = |granularity| Nesting::new(granularity, zone, range_ms);
        let nestings = granularities.iter().map(nesting).collect();
        Self { granularities, granularity, range, nestings }
    }

    fn requested(&self) -> &Nesting {
        &self.nestings[self.granularity.0]
    }

    /// Returns the resolution of the slots.
    pub(crate) fn resolution(&self) -> Resolution {
        match self.requested().local_slot() {
            Some(unit) => Resolution::Calendar(unit),
            None => Resolution::Named(self.granularities[self.granularity].name.clone()),
        }
    }

    /// Returns the range in whole documents.
    pub(crate) fn whole_documents(&self) -> Range<UnixMillis> {
        self.requested().whole_documents(&self.range)
    }

    /// Returns the documents of a group. `shells` are the starts of its preallocated documents.
    ///
    /// # Errors
    /// When the budget is used up.
    pub(crate) fn nest(
        &self,
        group: &Group,
        (axis, cells): (&Axis, &[Cell]),
        shells: Vec<UnixMillis>,
        budget: &Budget,
    ) -> Result<Vec<NestedDocument>, QueryError> {
        let nesting = self.requested();
        // A slot of a coarser granularity belongs to a document of that granularity.
        let nesting_of_width = |width: i64| {
            let coarser = granularity_of_width(self.granularities, width);
            let coarser = coarser.filter(|_| nesting.local_slot().is_none());
            let coarser = coarser.map_or(self.granularity, |it| it.max(self.granularity));
            &self.nestings[coarser.0]
        };
        let merged = group.merged.then_some(group.count);
        let slots = axis.slots().iter().copied().zip(cells.iter().copied());
        budget.reserve(slots.len() * SLOT_BYTES)?;
        nest((&group.entry, merged), slots, nesting_of_width, (nesting, shells), budget)
    }
}
