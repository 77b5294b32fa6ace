//! The series that a part of an evaluation reads in one shard, for a comparison with the series of
//! other shards.
//!
//! A series is listed when it has cells, even if it has no value in the result: a series that a
//! comparison leaves out, or that ended, in one shard only must not count in another shard. Must
//! never know: what is evaluated, where the shards are.

use xxhash_rust::xxh3::xxh3_64;

use crate::query::{
    QueryError,
    promql::{selectors::Selectors, value::range_vector::CellMatrix},
    wire::put_text,
};

/// The series of one shard that an evaluation read.
#[derive(Debug, Default)]
pub(crate) struct ReadSeries {
    /// The hashes of the labels of the series with cells, in ascending order.
    pub(crate) hashes: Vec<u64>,
    /// True when a series has native histograms. The series after it are not read.
    pub(crate) has_histograms: bool,
    key: Vec<u8>,
}

impl ReadSeries {
    fn add(&mut self, cells: &CellMatrix) {
        for series in &cells.series {
            self.has_histograms |= !series.histograms.is_empty();
            if series.cells.is_empty() && series.counted.is_empty() {
                continue;
            }
            self.key.clear();
            for (name, value) in series.labels.iter() {
                put_text(name, &mut self.key);
                put_text(value, &mut self.key);
            }
            self.hashes.push(xxh3_64(&self.key));
        }
    }
}

impl Selectors<'_> {
    /// Runs a part of the evaluation that reads the cells of this shard only. Returns its result
    /// and the series that it read. The part ends early, with an incomplete result, when a series
    /// has native histograms.
    pub(crate) fn of_this_shard<T>(
        &self,
        run: impl FnOnce() -> Result<T, QueryError>,
    ) -> Result<(T, ReadSeries), QueryError> {
        *self.of_this_shard.borrow_mut() = Some(ReadSeries::default());
        let result = run();
        let mut read = self.of_this_shard.take().unwrap_or_default();
        read.hashes.sort_unstable();
        read.hashes.dedup();
        Ok((result?, read))
    }

    /// Returns true while only the cells of this shard are read.
    pub(crate) fn is_of_this_shard(&self) -> bool {
        self.of_this_shard.borrow().is_some()
    }

    /// Lists the series of cells that were read, if they are compared with those of other shards.
    pub(crate) fn list(&self, cells: &CellMatrix) {
        if let Some(read) = self.of_this_shard.borrow_mut().as_mut() {
            read.add(cells);
        }
    }

    /// Returns true when the evaluation ends early.
    pub(crate) fn ends_early(&self) -> bool {
        self.of_this_shard.borrow().as_ref().is_some_and(|read| read.has_histograms)
    }

    /// Returns the memory of the list in bytes.
    pub(crate) fn listed_bytes(&self) -> usize {
        let read = self.of_this_shard.borrow();
        read.as_ref().map_or(0, |read| read.hashes.capacity() * size_of::<u64>())
    }
}
