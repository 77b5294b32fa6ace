//! The time grid of a partition: its start and end, its documents and their slots.
//!
//! A grid never changes. Changed settings apply to new partitions, which end where they meet
//! existing partitions. Must never know: files.

use std::ops::Range;

use crate::model::{Granularity, GranularityIndex, PartitionId, Span, UnixMillis};

/// The span of a partition, divided into documents and slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartitionGrid {
    pub(crate) id: PartitionId,
    /// The end, exclusive.
    pub(crate) end: UnixMillis,
    /// Width of a slot.
    pub(crate) width_ms: i64,
    /// Length of a document.
    pub(crate) document: Span,
}

impl PartitionGrid {
    /// Creates the grid of a partition whose documents have a span.
    pub(crate) fn new(id: PartitionId, end: UnixMillis, width_ms: i64, document: Span) -> Self {
        Self { id, end, width_ms, document }
    }

    /// Returns the grid of a new partition that contains `at`, between the partitions before and
    /// after it.
    pub(crate) fn between(
        granularity: &Granularity,
        index: GranularityIndex,
        at: UnixMillis,
        before: Option<&Self>,
        after: Option<&Self>,
    ) -> Self {
        let period = granularity.partition_start(at);
        let start = before.map_or(period, |before| period.max(before.end));
        let end = granularity.partition_end(period);
        let end = after.map_or(end, |after| end.min(after.id.start));
        // Documents must not extend beyond the partition. If they would, they get the length of the
        // documents in a neighbouring partition.
        let fits = |span: &Span| span.start_of(start) == start && span.start_of(end) == end;
        let neighbours = [before, after].into_iter().flatten().map(|grid| grid.document);
        let mut spans = std::iter::once(granularity.document).chain(neighbours);
        let document = spans.find(fits).unwrap_or(Span::Fixed(granularity.width_ms));
        Self::new(PartitionId { granularity: index, start }, end, granularity.width_ms, document)
    }

    /// Returns the time range of the partition.
    pub(crate) fn range(&self) -> Range<i64> {
        self.id.start.0..self.end.0
    }

    /// Returns the seconds from the start to `at`.
    pub(crate) fn seconds(&self, at: UnixMillis) -> u32 {
        ((at.0 - self.id.start.0) / 1000) as u32
    }

    /// Returns the start of the document that contains `at`.
    pub(crate) fn document_start(&self, at: UnixMillis) -> UnixMillis {
        self.document.start_of(at)
    }

    /// Returns the start of the next document after the document that begins at `start`.
    pub(crate) fn next_document(&self, start: UnixMillis) -> UnixMillis {
        self.document.next(start)
    }

    /// Returns the number of slots of the document that begins at `start`.
    pub(crate) fn slots(&self, start: UnixMillis) -> usize {
        self.slot_index(start, self.next_document(start))
    }

    /// Returns the number of the slot that contains `at`, in the document that begins at `start`.
    pub(crate) fn slot_index(&self, start: UnixMillis, at: UnixMillis) -> usize {
        ((at.0 - start.0) / self.width_ms) as usize
    }

    /// Returns the last millisecond of the partition.
    pub(crate) fn last(&self) -> UnixMillis {
        self.end.minus(1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3_600_000;

    fn granularity(width_ms: i64, document: &str, partition: &str) -> Granularity {
        let span = |text: &str| text.parse().unwrap();
        Granularity::new(width_ms, span(document), span(partition), span("5y"))
    }

    fn at(text: &str) -> UnixMillis {
        UnixMillis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    #[test]
    fn longer_partitions_are_cut_at_older_ones() {
        let old = PartitionGrid::new(
            PartitionId {
                granularity: GranularityIndex::FINEST,
                start: at("2026-11-21T06:00:00Z"),
            },
            at("2026-11-21T12:00:00Z"),
            60_000,
            Span::Fixed(HOUR),
        );
        let check = |document: &str, time: &str, start: &str, end: &str, documents: &str| {
            let (day, time) = (granularity(60_000, document, "1d"), at(time));
            let (before, after) =
                if time < old.id.start { (None, Some(&old)) } else { (Some(&old), None) };
            let grid = PartitionGrid::between(&day, GranularityIndex::FINEST, time, before, after);
            assert_eq!((grid.id.start, grid.end), (at(start), at(end)), "{time}");
            assert_eq!(grid.document.to_string(), documents, "{time}");
        };
        let (midnight, six) = ("2026-11-21T00:00:00Z", "2026-11-21T06:00:00Z");
        let (noon, tomorrow) = ("2026-11-21T12:00:00Z", "2026-11-22T00:00:00Z");
        check("30m", "2026-11-21T03:00:00Z", midnight, six, "30m");
        check("30m", "2026-11-21T13:00:00Z", noon, tomorrow, "30m");
        // Five documents of 72 minutes end at six.
        check("72m", "2026-11-21T03:00:00Z", midnight, six, "72m");
        check("1h", "2026-11-22T13:00:00Z", tomorrow, "2026-11-23T00:00:00Z", "1h");
        check("16m", "2026-11-21T13:00:00Z", noon, tomorrow, "16m");
        // No document of 32 minutes ends at six, so the documents are as long as the older
        // documents.
        check("32m", "2026-11-21T03:00:00Z", midnight, six, "1h");
    }

    proptest! {
        #[test]
        fn grids_of_any_settings_contain_their_time_and_never_overlap(
            steps in prop::collection::vec((0..4_usize, 0..200_i64), 1..40)
        ) {
            let settings = [("1h", "6h"), ("30m", "1d"), ("45m", "3h"), ("1h", "1w")];
            let settings = settings.map(|(document, partition)| granularity(60_000, document, partition));
            let mut grids: Vec<PartitionGrid> = Vec::new();
            for (which, hours) in steps {
                let time = at("2026-11-16T00:30:00Z").plus(hours * HOUR);
                if grids.iter().any(|grid| grid.range().contains(&time.0)) {
                    continue;
                }
                let before = grids.iter().rfind(|grid| grid.end <= time).cloned();
                let after = grids.iter().find(|grid| grid.id.start > time).cloned();
                let grid =
                    PartitionGrid::between(&settings[which], GranularityIndex::FINEST, time, before.as_ref(), after.as_ref());
                prop_assert!(grid.range().contains(&time.0));
                prop_assert_eq!(grid.document_start(grid.id.start), grid.id.start);
                prop_assert_eq!(grid.document_start(grid.end), grid.end);
                let overlaps = |other: &PartitionGrid| other.id.start < grid.end && grid.id.start < other.end;
                prop_assert!(!grids.iter().any(overlaps));
                grids.push(grid);
                grids.sort_by_key(|grid| grid.id.start);
            }
        }
    }
}
