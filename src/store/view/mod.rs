//! Views: documents merged with the cells that are not in documents yet, each sample exactly once.
//!
//! A view first copies the cells in memory, under the catalog's lock, then begins its read of the
//! head, and then of the partitions, without a lock. The copy has a number: the last journal record
//! that it includes. Cells move in one direction, from memory to the head and to documents, and the
//! number of their last record moves with them in the same transaction. Therefore a copied cell
//! counts unless the head or its documents include everything up to the copy's number, and a row of
//! the head counts unless its documents include the row. Checkpoints may begin and end in the
//! meantime: a view has all samples that were accepted before it, each once, and perhaps some later
//! samples.
//!
//! Must never know: the use of the cells.

mod gathered;
mod head_cells;
mod kinds;
pub(crate) mod level;
mod locations;

use std::{
    collections::BTreeMap,
    ops::{ControlFlow, Range},
};

use super::{
    documents::{Columns, Slot, merge_equal},
    error::StoreError,
    handle::Store,
};
use crate::model::{GranularityIndex, HistogramCell, HistogramSlot, Kind, SeriesId, UnixMillis};
use kinds::Parts;
pub use kinds::Stretch;
pub(crate) use level::LevelView;
pub use locations::SampleLocations;

/// The maximum number of slots for which memory is reserved in advance.
const SLOTS_AT_ONCE: usize = 4096;

/// A consistent view of several series at one granularity over a time range.
pub struct View {
    store: Store,
    index: GranularityIndex,
    range: Range<i64>,
    /// The series, ascending.
    series: Vec<SeriesId>,
    parts: Box<Parts>,
    /// The levels with the slot width of the granularity that may have cells of the series. Each
    /// sample is in one of them.
    levels: Vec<LevelView>,
}

impl Store {
    /// Takes a consistent view of series of the project; series of other projects are empty.
    /// `range` is widened to whole slots of the granularity.
    ///
    /// # Errors
    /// When a partition cannot be read.
    pub fn view(
        &self,
        index: GranularityIndex,
        range: Range<UnixMillis>,
        series: &[SeriesId],
    ) -> Result<View, StoreError> {
        let (mut all, mut parts) = (series.to_vec(), Box::<Parts>::default());
        let dictionary = self.dictionary();
        dictionary.retain_own(&mut all);
        if dictionary.has_parts() {
            for id in &all.clone() {
                let parts_of_series = dictionary.parts(*id);
                all.extend_from_slice(parts_of_series);
                if !parts_of_series.is_empty() {
                    parts.of.insert(*id, parts_of_series.to_vec());
                }
                if dictionary.has_parts_of_another_kind(*id) {
                    let with_kind = |id: &SeriesId| Some((*id, dictionary.kind(*id)?));
                    let stretches =
                        parts_of_series.iter().chain([id]).filter_map(with_kind).collect();
                    parts.stretches.insert(*id, stretches);
                }
            }
        }
        drop(dictionary);
        Ok(View { parts, ..self.view_apart(index, range, all)? })
    }

    /// Takes a consistent view of each series without its parts, at all levels with the slot width
    /// of the granularity that may have cells of the series.
    pub(crate) fn view_apart(
        &self,
        index: GranularityIndex,
        range: Range<UnixMillis>,
        mut series: Vec<SeriesId>,
    ) -> Result<View, StoreError> {
        series.sort_unstable();
        series.dedup();
        let whole = self.whole_slots(index, &range);
        let levels = if self.has_classes() {
            let levels = self.levels_with_cells(index, &whole, &series);
            let view = |(level, series)| self.view_level(level, range.clone(), series);
            levels.into_iter().map(view).collect::<Result<_, _>>()?
        } else {
            vec![self.view_level(index, range, series.clone())?]
        };
        let (store, parts) = (self.clone(), Box::default());
        Ok(View { store, index, range: whole, series, parts, levels })
    }

    pub(super) fn whole_slots(
        &self,
        index: GranularityIndex,
        range: &Range<UnixMillis>,
    ) -> Range<i64> {
        let granularity = self.granularity(index);
        let from = granularity.slot_start(range.start).0;
        from..(granularity.slot_start(range.end.minus(1)).0 + granularity.width_ms).max(from)
    }

    /// Returns the levels that may have cells of the series in a range, with their series. A series
    /// whose class changed within the range has several levels.
    fn levels_with_cells(
        &self,
        index: GranularityIndex,
        range: &Range<i64>,
        series: &[SeriesId],
    ) -> Vec<(GranularityIndex, Vec<SeriesId>)> {
        let catalog = self.inner.catalog.read();
        let classes = catalog.series_classes();
        let mut levels: Vec<(GranularityIndex, Vec<SeriesId>)> = Vec::new();
        for id in series {
            for class in classes.within(*id, range) {
                let Some(level) = self.level_in(index, class) else { continue };
                match levels.iter_mut().find(|(known, _)| *known == level) {
                    Some((_, ids)) if ids.last() == Some(id) => {}
                    Some((_, ids)) => ids.push(*id),
                    None => levels.push((level, vec![*id])),
                }
            }
        }
        levels
    }
}

impl View {
    /// Returns the slots of a series that are not empty, ascending.
    ///
    /// # Errors
    /// When a document cannot be read.
    pub fn slots(&self, series: SeriesId) -> Result<Vec<Slot>, StoreError> {
        let mut slots = Vec::new();
        self.slots_into(series, Columns::ALL, &mut slots)?;
        Ok(slots)
    }

    /// Replaces `slots` with the slots of a series, as cells of its current kind. In cells of one
    /// sample or more than two, columns that are not wanted may have any value.
    ///
    /// # Errors
    /// When a document cannot be read.
    pub fn slots_into(
        &self,
        series: SeriesId,
        wanted: Columns,
        slots: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        if let Some(stretches) = self.stretches(series) {
            let kind = stretches.last().map_or(Kind::Gauge, |(_, kind)| *kind);
            return self.slots_as(series, kind, slots);
        }
        let Some(parts) = self.parts.of.get(&series) else {
            return self.slots_apart(series, wanted, slots);
        };
        self.slots_apart(series, Columns::ALL, slots)?;
        let mut of_part = Vec::new();
        for part in parts {
            self.slots_apart(*part, Columns::ALL, &mut of_part)?;
            slots.append(&mut of_part);
        }
        merge_equal(slots);
        slots.retain(|slot| !slot.cell.is_empty());
        Ok(())
    }

    /// Returns the document spans of a series that were preallocated and have no samples,
    /// ascending. `slots` are the slots of the series; see [`Self::slots_into`]. Only spans that
    /// are completely within the range of the view are returned.
    ///
    /// # Errors
    /// When a partition cannot be read.
    pub fn shells(
        &self,
        series: SeriesId,
        slots: &[Slot],
    ) -> Result<Vec<Range<UnixMillis>>, StoreError> {
        let mut spans = Vec::new();
        for level in &self.levels {
            level.shells(series, &mut spans)?;
            for part in self.parts.of.get(&series).into_iter().flatten() {
                level.shells(*part, &mut spans)?;
            }
        }
        spans.sort_unstable_by_key(|span| span.start);
        spans.dedup();
        spans.retain(|span| {
            let first = slots.partition_point(|slot| slot.start < span.start);
            let has_samples = slots.get(first).is_some_and(|slot| slot.start < span.end);
            !has_samples && self.range.start <= span.start.0 && span.end.0 <= self.range.end
        });
        Ok(spans)
    }

    /// Returns the slots of a series of histograms, with those of its parts, ascending; empty for a
    /// series of numbers. A slot that only corrects others is left out. `reserve` is called with
    /// the bytes of each cell before the next cell is read.
    ///
    /// # Errors
    /// When a document cannot be read, or `reserve` fails.
    pub fn histogram_slots<E: From<StoreError>>(
        &self,
        series: SeriesId,
        reserve: &mut dyn FnMut(usize) -> Result<(), E>,
    ) -> Result<Vec<HistogramSlot>, E> {
        let parts = self.parts.of.get(&series).into_iter().flatten().copied();
        self.histograms_apart(&[series].into_iter().chain(parts).collect::<Vec<_>>(), reserve)
    }

    /// Returns the slots of stretches of a series, merged; see [`Self::histogram_slots`].
    ///
    /// # Errors
    /// When a document cannot be read, or `reserve` fails.
    pub fn histograms_apart<E: From<StoreError>>(
        &self,
        stretches: &[SeriesId],
        reserve: &mut dyn FnMut(usize) -> Result<(), E>,
    ) -> Result<Vec<HistogramSlot>, E> {
        let (mut cells, mut fault) = (BTreeMap::<i64, HistogramCell>::new(), None);
        let mut add = |slot: i64, cell: HistogramCell| {
            fault = reserve(cell.bytes()).err();
            if fault.is_some() {
                return ControlFlow::Break(());
            }
            match cells.get_mut(&slot) {
                Some(known) => known.merge(&cell),
                None => drop(cells.insert(slot, cell)),
            }
            ControlFlow::Continue(())
        };
        for (id, level) in
            stretches.iter().flat_map(|id| self.levels.iter().map(move |level| (id, level)))
        {
            if level.each_histogram(*id, &mut add)?.is_break() {
                break;
            }
        }
        if let Some(fault) = fault {
            return Err(fault);
        }
        let slots = cells.into_iter().filter(|(_, cell)| cell.n > 0);
        let slots = slots.map(|(start, cell)| HistogramSlot { start: UnixMillis(start), cell });
        Ok(slots.collect())
    }

    /// Replaces `slots` with the slots of a series without its parts.
    fn slots_apart(
        &self,
        series: SeriesId,
        wanted: Columns,
        slots: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        if let [level] = &*self.levels {
            return level.slots_into(series, wanted, slots);
        }
        slots.clear();
        let mut of_level = Vec::new();
        for level in self.levels.iter().filter(|level| level.series.binary_search(&series).is_ok())
        {
            // Cells of several levels merge, which needs all columns.
            level.slots_into(series, Columns::ALL, &mut of_level)?;
            slots.append(&mut of_level);
        }
        merge_equal(slots);
        slots.retain(|slot| !slot.cell.is_empty());
        Ok(())
    }
}
