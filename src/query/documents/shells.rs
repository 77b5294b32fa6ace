//! Shells: preallocated documents without samples.
//!
//! Must never know: the form of a document.

use std::ops::Range;

use super::DocumentsQuery;
use crate::{
    model::{GranularityIndex, SeriesId, UnixMillis},
    query::{QueryError, series::grouping::Group},
    store::{Columns, View},
};

/// The preallocated documents of some series.
pub(super) struct Shells {
    view: View,
}

impl Shells {
    /// Returns the starts of the documents without samples that were preallocated for any of the
    /// series.
    pub(super) fn starts(&self, series: &[SeriesId]) -> Result<Vec<UnixMillis>, QueryError> {
        let (mut starts, mut slots) = (Vec::new(), Vec::new());
        for id in series {
            self.view.slots_into(*id, Columns::NONE, &mut slots)?;
            starts.extend(self.view.shells(*id, &slots)?.into_iter().map(|span| span.start));
        }
        Ok(starts)
    }
}

impl DocumentsQuery<'_> {
    /// Returns the shells of a granularity over the stored documents that overlap the range.
    pub(super) fn shells(
        &self,
        groups: &[Group],
        granularity: GranularityIndex,
    ) -> Result<Shells, QueryError> {
        let Range { start, end } = self.request.range;
        let (stored, level) =
            (self.coverage.stored(granularity), &self.coverage.granularities()[granularity]);
        let last = level.document_start(end.minus(1));
        let range = level.document_start(start)..level.document.next(last);
        let ids: Vec<_> = groups.iter().flat_map(|group| &group.members).copied().collect();
        Ok(Shells { view: self.store.view(stored, range, &ids)? })
    }
}
