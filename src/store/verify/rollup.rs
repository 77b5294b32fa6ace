//! One granularity against the next finer one: each slot is recomputed and compared.

use std::{collections::BTreeMap, sync::Arc};

use super::VerifyReport;
use crate::{
    model::{Cell, Granularity, SeriesId, UnixMillis},
    store::{
        Store, StoreError,
        partition::{Partition, PartitionId, PartitionReader},
    },
};

/// Sums may differ in their last bits, because they depend on the order of the samples.
const SUM_TOLERANCE: f64 = 1e-9;

/// Recomputes a partition from the next finer granularity, as far as that is kept, and compares.
pub(super) fn compare(
    store: &Store,
    partition: &Arc<Partition>,
    now: UnixMillis,
    report: &mut VerifyReport,
) -> Result<(), StoreError> {
    // The finest granularity has nothing to be compared with.
    let Some(finer) = partition.id.level.checked_sub(1) else { return Ok(()) };
    let levels = store.granularities().levels();
    let sides = Sides {
        partition,
        coarse: &levels[partition.id.level],
        fine: &levels[finer],
        complete_since: complete_since(store, finer)?,
        coarse_reader: partition.read()?,
        fine_readers: fine_readers(store, finer, partition, now)?,
    };
    let series_count = store.dictionary().len() as u32;
    let mut document = partition.id.start;
    while document < partition.end {
        let slots = sides.comparable_slots(document);
        if slots.iter().any(|comparable| *comparable) {
            for series in (0..series_count).map(SeriesId) {
                sides.compare_document(document, series, &slots, report)?;
            }
        }
        document = sides.coarse.document.next(document);
    }
    Ok(())
}

/// Reports a partition that holds samples although the next coarser granularity has no file.
pub(super) fn check_coarser_exists(
    store: &Store,
    partition: &Arc<Partition>,
    report: &mut VerifyReport,
) -> Result<(), StoreError> {
    let Some(coarser) = store.granularities().levels().get(partition.id.level + 1) else {
        return Ok(());
    };
    let range = partition.id.start.0..partition.end.0;
    let found = store.inner.partitions.overlapping(partition.id.level + 1, range);
    if found.is_empty() && partition.id.start >= complete_since(store, partition.id.level)? {
        let start = coarser.partition_start(partition.id.start);
        let missing = Partition::file_name(coarser, start);
        report.fault(&missing, format!("it is missing: {} holds samples", partition.file_path()));
    }
    Ok(())
}

/// Since when both a level and the next coarser one have every sample.
fn complete_since(store: &Store, finer: usize) -> Result<UnixMillis, StoreError> {
    let known = store.inner.journal.levels()?;
    let both = known.iter().skip(finer).take(2).map(|level| level.complete_since);
    Ok(both.max().unwrap_or(UnixMillis::MIN))
}

/// The partitions of the finer level that are whole and still kept, by start.
fn fine_readers(
    store: &Store,
    finer: usize,
    partition: &Partition,
    now: UnixMillis,
) -> Result<BTreeMap<UnixMillis, PartitionReader>, StoreError> {
    let fine = &store.granularities().levels()[finer];
    let damaged = store.damaged_partitions();
    let whole = |fine_partition: &Arc<Partition>| {
        let PartitionId { start, .. } = fine_partition.id;
        // Past its retention, only coarser levels took in late samples.
        fine.keeps_partition(start, now) && !damaged.contains(&fine_partition.set_aside_name())
    };
    let overlapping =
        store.inner.partitions.overlapping(finer, partition.id.start.0..partition.end.0);
    let read = |found: Arc<Partition>| Ok((found.id.start, found.read()?));
    overlapping.into_iter().filter(whole).map(read).collect()
}

/// A partition and what it is compared with.
struct Sides<'a> {
    partition: &'a Arc<Partition>,
    coarse: &'a Granularity,
    fine: &'a Granularity,
    complete_since: UnixMillis,
    coarse_reader: PartitionReader,
    fine_readers: BTreeMap<UnixMillis, PartitionReader>,
}

impl Sides<'_> {
    /// Which slots of a document the finer level still holds whole.
    fn comparable_slots(&self, document: UnixMillis) -> Vec<bool> {
        let comparable = |slot: usize| {
            let start = document.plus(slot as i64 * self.coarse.width_ms);
            let end = start.plus(self.coarse.width_ms);
            let mut fine_start = self.fine.partition_start(start);
            let mut covered = start >= self.complete_since;
            while covered && fine_start < end {
                covered = self.fine_readers.contains_key(&fine_start);
                fine_start = self.fine.partition_end(fine_start);
            }
            covered
        };
        (0..self.coarse.slots(document)).map(comparable).collect()
    }

    fn compare_document(
        &self,
        document: UnixMillis,
        series: SeriesId,
        slots: &[bool],
        report: &mut VerifyReport,
    ) -> Result<(), StoreError> {
        let found = self.coarse_reader.document(document, series, |layout, doc| {
            (0..layout.slots()).map(|slot| layout.cell(doc, slot)).collect::<Vec<_>>()
        })?;
        let recomputed = self.recompute(document, series, slots.len())?;
        if found.is_none() && recomputed.is_none() {
            return Ok(());
        }
        let found = found.unwrap_or_else(|| vec![Cell::EMPTY; slots.len()]);
        let recomputed = recomputed.unwrap_or_else(|| vec![Cell::EMPTY; slots.len()]);
        for slot in (0..slots.len()).filter(|slot| slots[*slot]) {
            report.compared += 1;
            if let Some(what) = difference(&found[slot], &recomputed[slot]) {
                let at = document.plus(slot as i64 * self.coarse.width_ms);
                let problem = format!(
                    "document of series {} at {document}, slot at {at}: {what}, recomputed from {}",
                    series.0, self.fine.name
                );
                report.fault(self.partition.file_path(), problem);
            }
        }
        Ok(())
    }

    /// A document's cells, merged from the finer level; `None` when that has no document there.
    fn recompute(
        &self,
        document: UnixMillis,
        series: SeriesId,
        slots: usize,
    ) -> Result<Option<Vec<Cell>>, StoreError> {
        let end = self.coarse.document.next(document);
        let mut cells = None;
        let mut fine_document = self.fine.document_start(document);
        while fine_document < end {
            let holder = self.fine.partition_start(fine_document);
            if let Some(reader) = self.fine_readers.get(&holder) {
                reader.document(fine_document, series, |layout, doc| {
                    let cells = cells.get_or_insert_with(|| vec![Cell::EMPTY; slots]);
                    for slot in 0..layout.slots() {
                        let at = fine_document.plus(slot as i64 * self.fine.width_ms);
                        if at >= document && at < end {
                            let index = self.coarse.slot_index(document, at);
                            let shift = (at.0 - self.coarse.slot_start(at).0) as u32;
                            cells[index].merge(&layout.cell(doc, slot).shifted(shift));
                        }
                    }
                })?;
            }
            fine_document = self.fine.document.next(fine_document);
        }
        Ok(cells)
    }
}

/// The first field in which the cells differ.
fn difference(found: &Cell, recomputed: &Cell) -> Option<String> {
    if found.n != recomputed.n {
        return Some(format!("n is {} and should be {}", found.n, recomputed.n));
    }
    if found.is_empty() {
        return None;
    }
    let times = [
        ("first_at", found.first_at, recomputed.first_at),
        ("last_at", found.last_at, recomputed.last_at),
    ];
    let values = [
        ("min", found.min, recomputed.min),
        ("max", found.max, recomputed.max),
        ("first", found.first, recomputed.first),
        ("last", found.last, recomputed.last),
    ];
    let time = times.iter().find(|(_, a, b)| a != b).map(|(name, a, b)| (name, *a, *b));
    let time = time.map(|(name, a, b)| format!("{name} is {a} and should be {b}"));
    let value = || values.iter().find(|(_, a, b)| a.to_bits() != b.to_bits());
    let value = || value().map(|(name, a, b)| format!("{name} is {a} and should be {b}"));
    let sum = || {
        let (a, b) = (found.sum, recomputed.sum);
        // The terms may be much larger than their sum; first and last say how large.
        let scale = [a, b, found.first, found.last].iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let differs = (a - b).abs() > SUM_TOLERANCE * scale * f64::from(found.n);
        differs.then(|| format!("sum is {a} and should be {b}"))
    };
    time.or_else(value).or_else(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_differ_say_in_what() {
        let mut cell = Cell::single(5, 2.0);
        cell.merge(&Cell::single(9, 3.0));
        assert_eq!(difference(&cell, &cell), None);
        let other = |change: fn(&mut Cell)| {
            let mut other = cell;
            change(&mut other);
            difference(&other, &cell).unwrap_or_default()
        };
        assert_eq!(other(|c| c.n = 3), "n is 3 and should be 2");
        assert_eq!(other(|c| c.first_at = 4), "first_at is 4 and should be 5");
        assert_eq!(other(|c| c.max = 3.5), "max is 3.5 and should be 3");
        assert_eq!(other(|c| c.sum += 1e-6), "sum is 5.000001 and should be 5");
        assert_eq!(other(|c| c.sum += 1e-12), "");
        assert_eq!(difference(&Cell::EMPTY, &Cell::EMPTY), None);
    }
}
