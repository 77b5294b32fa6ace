//! The sealed size of the documents of each period.
//!
//! Must never know: what the size is used for.

use std::collections::BTreeMap;

use super::Partitions;
use crate::{
    model::{GranularityIndex, UnixMillis},
    store::documents::partition::Partition,
};

impl Partitions {
    /// Returns the sealed bytes of the last `count` document periods of a granularity that ended at
    /// or before a time, latest first. Periods without sealed documents are left out.
    pub(crate) fn last_periods(
        &self,
        granularity: GranularityIndex,
        by: UnixMillis,
        count: usize,
    ) -> Vec<u64> {
        let partitions = self.overlapping(granularity, i64::MIN..by.0);
        let periods = partitions.iter().rev().flat_map(|partition| periods(partition, by));
        periods.take(count).collect()
    }
}

/// Returns the sealed bytes of the periods of a partition that ended at or before a time, latest
/// first.
fn periods(partition: &Partition, by: UnixMillis) -> Vec<u64> {
    let grid = &partition.grid;
    let mut periods: BTreeMap<UnixMillis, u64> = BTreeMap::new();
    for segment in partition.segment_files() {
        for (seconds, bytes) in segment.spans() {
            let [start, end] =
                [seconds.start, seconds.end].map(|seconds| grid.id.start.plus(seconds * 1000));
            // A tile of a folded segment contains the documents of several periods.
            let next = |document: &UnixMillis| Some(grid.next_document(*document));
            let documents = std::iter::successors(Some(grid.document_start(start)), next);
            let documents: Vec<_> = documents.take_while(|document| *document < end).collect();
            for document in &documents {
                *periods.entry(*document).or_default() += bytes / documents.len() as u64;
            }
        }
    }
    periods.retain(|document, _| grid.next_document(*document) <= by);
    periods.into_values().rev().collect()
}
