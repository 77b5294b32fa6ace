//! The part of one store on a page of an export: its series with their slots.
//!
//! Must never know: other shards, documents.

use std::{collections::BTreeSet, ops::Range};

use serde::{Deserialize, Serialize};

use crate::{
    model::{Granularity, HistogramSlot, SeriesInfo, UnixMillis},
    query::{
        Budget, QueryError, QueryLimits, Resolution, Selector, SeriesToken,
        cells::coverage::coverage,
        documents::check_count,
        series::selector::{After, SeriesPage},
        time::resolution::{AUTO_POINTS, granularity_of_documents},
    },
    store::{Columns, Slot, Store},
};

/// Bytes of histograms after which a page ends. A single series may have more.
const PAGE_HISTOGRAM_BYTES: usize = 4 << 20;
/// Memory of a histogram on a page and of its text, for each byte of the histogram in memory.
pub(super) const HISTOGRAM_FACTOR: usize = 3;

/// A request for a part.
#[derive(Debug)]
pub(super) struct PartRequest<'a> {
    pub(super) selector: &'a Selector,
    pub(super) resolution: &'a Resolution,
    pub(super) range: Range<UnixMillis>,
    /// The last series of the previous page.
    pub(super) after: Option<After<'a>>,
    /// The newest series of this store to include.
    pub(super) upto: Option<&'a SeriesToken>,
    pub(super) shells: bool,
    /// The target number of slots. A single series may have more.
    pub(super) slots_max: i64,
}

/// The numbers of a part and of all matching series of its store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartHead {
    /// The number of matching series.
    pub(super) total: usize,
    /// The number of matching series on earlier pages.
    pub(super) before: usize,
    /// The newest matching series.
    pub(super) upto: Option<SeriesToken>,
    pub(super) resolution: String,
    pub(super) width_ms: i64,
    /// The tag names of all matching series.
    pub(super) tags: BTreeSet<String>,
    /// True when one of the matching series has histograms.
    pub(super) has_histograms: bool,
}

/// A series of a part.
#[derive(Debug)]
pub(super) struct SeriesPart<'a> {
    pub(super) info: &'a SeriesInfo,
    pub(super) slots: &'a [Slot],
    /// The starts of preallocated documents without samples.
    pub(super) shells: Vec<UnixMillis>,
    pub(super) histograms: Vec<HistogramSlot>,
}

/// Receives a series.
pub(super) type VisitSeries<'a> =
    dyn FnMut(&Granularity, SeriesPart<'_>) -> Result<(), QueryError> + 'a;

impl PartRequest<'_> {
    /// Calls `visit` with the series of the part, in order of their keys. The memory of histograms
    /// is reserved. Returns the granularity of the slots.
    ///
    /// # Errors
    /// See [`super::export`].
    pub(super) fn read(
        &self,
        (store, budget): (&Store, &Budget),
        limits: &QueryLimits,
        now: UnixMillis,
        visit: &mut VisitSeries<'_>,
    ) -> Result<(PartHead, Granularity), QueryError> {
        // Automatic resolution ignores granularities that no longer receive samples, because they
        // contain too little of the range.
        let covered_range =
            if *self.resolution == Resolution::Auto { &(now..now) } else { &self.range };
        let coverage = coverage(store, &[], covered_range, now);
        let index = granularity_of_documents(&coverage, self.resolution, &self.range, AUTO_POINTS)?;
        let granularity = &coverage.granularities()[index];
        let first = granularity.document_start(self.range.start);
        let last = granularity.document_start(UnixMillis(self.range.end.0 - 1));
        let range = first..granularity.document.next(last);
        let slots = (range.end.0 - range.start.0) / granularity.width_ms;
        check_count(slots, 1, limits)?;
        let per_page = self.slots_max.min(limits.points_max as i64) / slots.max(1);
        let count = (per_page.max(1) as usize).min(limits.lines_max.max(1));
        let mut head = PartHead {
            resolution: granularity.name.clone(),
            width_ms: granularity.width_ms,
            ..PartHead::default()
        };
        let bounds = (self.after, self.upto);
        let found = self.selector.page(store, budget, bounds, count, |info| {
            head.has_histograms |= info.kind.is_histogram();
            for (name, _) in info.key.tags() {
                if !head.tags.contains(name) {
                    head.tags.insert(name.to_owned());
                }
            }
        })?;
        let SeriesPage { total, before, upto, series } = found;
        (head.total, head.before, head.upto) = (total, before, upto);
        let ids: Vec<_> = series.iter().map(|(id, _)| *id).collect();
        let view = store.view(coverage.stored(index), range, &ids)?;
        let (mut filled, mut histogram_bytes) = (Vec::new(), 0);
        for (id, info) in &series {
            if histogram_bytes > PAGE_HISTOGRAM_BYTES {
                break;
            }
            budget.check()?;
            view.slots_into(*id, Columns::VALUES, &mut filled)?;
            let spans = if self.shells { view.shells(*id, &filled)? } else { Vec::new() };
            let shells = spans.iter().map(|span| granularity.document_start(span.start)).collect();
            let histograms = if info.kind.is_histogram() {
                view.histogram_slots(*id, &mut |bytes| {
                    histogram_bytes += bytes;
                    budget.reserve(HISTOGRAM_FACTOR * bytes).map_err(QueryError::from)
                })?
            } else {
                Vec::new()
            };
            visit(granularity, SeriesPart { info, slots: &filled, shells, histograms })?;
        }
        Ok((head, granularity.clone()))
    }
}
