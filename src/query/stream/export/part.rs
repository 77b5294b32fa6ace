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
    pub(super) max: PartMax,
}

/// The size of a part. A single series may have more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartMax {
    /// The target number of slots.
    slots: i64,
    /// The bytes of histograms after which the part ends.
    histogram_bytes: usize,
}

impl PartMax {
    /// The size of a page.
    pub(super) const PAGE: Self = Self { slots: 100_000, histogram_bytes: 4 << 20 };

    /// Returns the size of the part that each of `shards` shards has of a page.
    pub(super) fn of_shards(shards: usize, limits: &QueryLimits) -> Self {
        let Self { slots, histogram_bytes } = Self::PAGE;
        Self {
            slots: slots.min(limits.points_max as i64) / shards as i64,
            histogram_bytes: histogram_bytes / shards,
        }
    }

    /// Returns the smaller of both sizes.
    pub(super) fn min(self, other: Self) -> Self {
        Self {
            slots: self.slots.min(other.slots),
            histogram_bytes: self.histogram_bytes.min(other.histogram_bytes),
        }
    }
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
        let per_page = self.max.slots.min(limits.points_max as i64) / slots.max(1);
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
            if histogram_bytes > self.max.histogram_bytes {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{AcceptedBatch, Histogram, HistogramSample, Kind, histogram::Bucket},
        setup::{self, MINUTE, NOW},
    };

    const LIMITS: QueryLimits = QueryLimits { lines_max: 9, series_max: 9, points_max: 1000 };

    /// Returns the number of series of a part of a store with three series of histograms.
    fn series_of(max: PartMax) -> usize {
        let dir = tempfile::tempdir().unwrap();
        let (store, mut appender) = setup::open(dir.path(), NOW);
        for host in ["a", "b", "c"] {
            let info = setup::series("hist", &[("host", host)], Kind::GaugeHistogram);
            let id = setup::define(&mut appender, &[info], NOW)[0];
            let mut histogram = Histogram::empty(3);
            (histogram.count, histogram.sum) = (2.0, 3.0);
            histogram.positive = vec![Bucket { index: 1, count: 2.0 }];
            let batch = AcceptedBatch {
                series: vec![id],
                times: vec![NOW.0],
                values: vec![2.0],
                histograms: vec![HistogramSample { index: 0, histogram }],
                ..AcceptedBatch::default()
            };
            setup::send(&mut appender, batch, NOW);
        }
        let request = PartRequest {
            selector: &Selector::default(),
            resolution: &Resolution::Named("1m".to_owned()),
            range: NOW..NOW.plus(MINUTE),
            after: None,
            upto: None,
            shells: false,
            max,
        };
        let mut series = 0;
        let counted = request.read((&store, &Budget::UNLIMITED), &LIMITS, NOW, &mut |_, part| {
            assert_eq!(part.histograms.len(), 1);
            series += 1;
            Ok(())
        });
        assert_eq!(counted.unwrap().0.total, 3);
        series
    }

    #[test]
    fn a_part_is_smaller_with_more_shards_and_has_at_least_one_series() {
        let of_shards = |shards| PartMax::of_shards(shards, &LIMITS);
        assert_eq!(of_shards(1).slots, 1000);
        assert_eq!(of_shards(64), PartMax { slots: 15, histogram_bytes: 65_536 });
        assert_eq!(series_of(PartMax::PAGE), 3);
        // A document has 60 slots.
        assert_eq!(series_of(of_shards(8)), 2);
        assert_eq!(series_of(of_shards(64)), 1);
        assert_eq!(series_of(PartMax { slots: 1000, histogram_bytes: 1 }), 1);
    }
}
