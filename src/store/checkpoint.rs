//! The checkpoint: merging what was set aside into documents, exactly once.
//!
//! Each partition gets one transaction with its documents and the mark `applied_through`; a
//! partition whose mark already covers the frozen catalog was written before a crash and is
//! passed over. Only when all are written is the journal cut.

use std::collections::BTreeMap;

use super::{
    catalog::Frozen,
    counters::Counters,
    error::StoreError,
    layer::{Layer, SERIES_PER_PAGE, SlotCells},
    partition::{DocumentWriter, PartitionId, Written},
    partitions::Partitions,
};
use crate::model::{GranularitySet, SeriesId, UnixMillis};

/// Slots of one document period with their cells.
type Period<'a> = Vec<(usize, &'a SlotCells)>;

/// Writes the frozen cells into the partitions of every granularity that still keep them.
pub(crate) fn write_documents(
    frozen: &Frozen,
    granularities: &GranularitySet,
    partitions: &Partitions,
    counters: &Counters,
    now: UnixMillis,
) -> Result<(), StoreError> {
    let mut fanned_out = Layer::default();
    for (level, granularity) in granularities.levels().iter().enumerate() {
        let own = &frozen.layers[level];
        // The finest layer is used as it is; each coarser one takes in the one before.
        let layer = if level == 0 {
            own
        } else {
            let finer = if level == 1 { &frozen.layers[0] } else { &fanned_out };
            let mut merged = Layer::default();
            merged.absorb(finer, granularity);
            merged.absorb(own, granularity);
            fanned_out = merged;
            &fanned_out
        };
        for (start, periods) in by_partition(layer, granularities, level) {
            if granularity.keeps_partition(start, now) {
                let id = PartitionId { level, start };
                write_partition(id, &periods, frozen.through, partitions, counters)?;
            }
        }
    }
    Ok(())
}

/// Partition start -> document start -> slots.
fn by_partition<'a>(
    layer: &'a Layer,
    granularities: &GranularitySet,
    level: usize,
) -> BTreeMap<UnixMillis, BTreeMap<UnixMillis, Period<'a>>> {
    let granularity = &granularities.levels()[level];
    let mut out: BTreeMap<_, BTreeMap<_, Period<'_>>> = BTreeMap::new();
    for (slot_start, cells) in layer.all_slots() {
        let slot_start = UnixMillis(slot_start);
        let partition = granularity.partition_start(slot_start);
        let document = granularity.document_start(slot_start);
        let slot = granularity.slot_index(document, slot_start);
        out.entry(partition).or_default().entry(document).or_default().push((slot, cells));
    }
    out
}

fn write_partition(
    id: PartitionId,
    periods: &BTreeMap<UnixMillis, Period<'_>>,
    through: u64,
    partitions: &Partitions,
    counters: &Counters,
) -> Result<(), StoreError> {
    partitions.change(id, |partition| {
        if partition.read()?.applied_through >= through {
            return Ok(());
        }
        partition.write(Some(through), |writer| {
            for (document, period) in periods {
                write_period(writer, *document, period, counters)?;
            }
            Ok(())
        })
    })
}

/// Patches the documents of one period, series ascending, which is the order of the keys.
fn write_period(
    writer: &mut DocumentWriter<'_, '_>,
    document: UnixMillis,
    period: &Period<'_>,
    counters: &Counters,
) -> Result<(), StoreError> {
    let pages = period.iter().map(|(_, cells)| cells.page_count()).max().unwrap_or(0);
    for page in 0..pages {
        let slots: Vec<_> =
            period.iter().filter_map(|(slot, cells)| Some((*slot, cells.page(page)?))).collect();
        for lane in 0..SERIES_PER_PAGE {
            if slots.iter().all(|(_, cells)| cells[lane].is_empty()) {
                continue;
            }
            let series = SeriesId((page * SERIES_PER_PAGE + lane) as u32);
            let mut cells_written = 0;
            let written = writer.patch(document, series, |layout, doc| {
                let length = doc.len();
                for (slot, cells) in slots.iter().filter(|(_, cells)| !cells[lane].is_empty()) {
                    layout.merge_cell(doc, *slot, &cells[lane]);
                    cells_written += 1;
                }
                if doc.len() != length {
                    counters.documents_grown.add(1);
                }
            })?;
            counters.cells_written.add(cells_written);
            match written {
                Written::Patched => counters.documents_patched.add(1),
                Written::Created => counters.shells_missed.add(1),
            }
        }
    }
    Ok(())
}
