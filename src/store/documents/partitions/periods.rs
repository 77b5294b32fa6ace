//! The sealed size of the documents of one period.
//!
//! Must never know: what the size is used for.

use std::collections::BTreeMap;

use super::Partitions;
use crate::{
    model::{GranularityIndex, UnixMillis},
    store::documents::partition::Partition,
};

impl Partitions {
    /// Returns the sealed bytes of the last document period of a granularity that ended by a time;
    /// `None` when no period has sealed documents.
    pub(crate) fn last_period_bytes(
        &self,
        granularity: GranularityIndex,
        by: UnixMillis,
    ) -> Option<u64> {
        let partitions = self.overlapping(granularity, i64::MIN..by.0);
        partitions.iter().rev().find_map(|partition| last_period_bytes(partition, by))
    }
}

fn last_period_bytes(partition: &Partition, by: UnixMillis) -> Option<u64> {
    let place = &partition.place;
    let mut periods: BTreeMap<UnixMillis, u64> = BTreeMap::new();
    for segment in partition.segment_files() {
        for (seconds, bytes) in segment.spans() {
            let [start, end] =
                [seconds.start, seconds.end].map(|seconds| place.id.start.plus(seconds * 1000));
            // A tile of a folded segment contains the documents of several periods.
            let next = |document: &UnixMillis| Some(place.next_document(*document));
            let documents = std::iter::successors(Some(place.document_start(start)), next);
            let documents: Vec<_> = documents.take_while(|document| *document < end).collect();
            for document in &documents {
                *periods.entry(*document).or_default() += bytes / documents.len() as u64;
            }
        }
    }
    let is_complete = |(document, _): &(&UnixMillis, _)| place.next_document(**document) <= by;
    periods.iter().rev().find(is_complete).map(|(_, bytes)| *bytes)
}
