//! The catalog: the accepted samples in memory that are not yet in the head or in documents.
//!
//! The catalog is a pure function of the journal's records, each with the time at which it was
//! accepted: the same records in the same order produce the same catalog, so recovery replays them.
//! Cells have the finest granularity that still keeps their time; a checkpoint or a query merges
//! them into coarser cells. The catalog also contains the counter states and the senders' windows,
//! as of the same record.
//!
//! Must never know: files.

mod applying;
pub(crate) mod cell_map;
pub(crate) mod cell_row;
pub(crate) mod fan_out;
pub(crate) mod frozen;
mod rounds;
pub(crate) mod senders;
mod slots;

use std::{
    ops::Range,
    sync::{Arc, atomic::AtomicU32},
};

use crate::{
    model::{Cell, GranularityIndex, Kind, SeriesId, SeriesState, UnixMillis},
    store::{
        classes::{
            Classes,
            series_classes::{History, SeriesClasses},
        },
        histograms::map::HistogramMap,
        states::{EncodedRow, SeriesStates},
    },
};
use cell_map::CellMap;
use frozen::Frozen;
use senders::Senders;

/// Cells, counter states and senders' windows, as of one journal record.
#[derive(Debug)]
pub(crate) struct Catalog {
    classes: Arc<Classes>,
    series_classes: SeriesClasses,
    /// Cells by level, in the store's order.
    maps: Vec<CellMap>,
    histograms: HistogramMap,
    frozen: Option<Arc<Frozen>>,
    states: SeriesStates,
    senders: Senders,
    applied: u64,
    /// The time of each level before which slots lack samples, because these slots were beyond the
    /// retention when the samples arrived.
    lacks_before: Vec<UnixMillis>,
    /// The number of samples since [`Self::take_not_kept`] that are beyond the retention of every
    /// level.
    not_kept: u64,
    /// True during a change. Remains true when a panic interrupts the change.
    is_changing: bool,
}

impl Catalog {
    /// Returns an empty catalog. `series_classes` has no series yet.
    pub(crate) fn new(classes: Arc<Classes>, series_classes: SeriesClasses, applied: u64) -> Self {
        let count = classes.levels().len();
        let maps = vec![CellMap::default(); count];
        let lacks_before = vec![UnixMillis::EARLIEST; count];
        Self {
            classes,
            series_classes,
            maps,
            histograms: HistogramMap::default(),
            frozen: None,
            states: SeriesStates::default(),
            senders: Senders::default(),
            applied,
            lacks_before,
            not_kept: 0,
            is_changing: false,
        }
    }

    /// Returns the last journal record that is in the catalog.
    pub(crate) fn applied(&self) -> u64 {
        self.applied
    }

    /// Returns the bytes of cells in memory, including frozen cells.
    pub(crate) fn bytes(&self) -> usize {
        let frozen = self.frozen.iter().flat_map(|frozen| &frozen.maps);
        let cells: usize = self.maps.iter().chain(frozen).map(CellMap::bytes).sum();
        let of_frozen = self.frozen.as_ref().map_or(0, |frozen| frozen.histograms.bytes());
        cells + self.histograms.bytes() + of_frozen
    }

    /// Returns the bytes of cells that the next checkpoint would write.
    pub(crate) fn active_bytes(&self) -> usize {
        self.maps.iter().map(CellMap::bytes).sum::<usize>() + self.histograms.bytes()
    }

    /// Returns the approximate bytes of the series' states and classes, of packed states, and of
    /// the times of the latest samples.
    pub(crate) fn state_bytes(&self) -> [usize; 3] {
        let [states, packed, seen] = self.states.bytes();
        [states + self.series_classes.bytes(), packed, seen]
    }

    /// Returns the number of counters that are packed.
    pub(crate) fn idle_series(&self) -> usize {
        self.states.idle_series()
    }

    /// Packs counters without a sample since `before`; see [`SeriesStates::pack_idle`].
    pub(crate) fn pack_idle(&mut self, rows: Range<u32>, before: UnixMillis) -> bool {
        self.is_changing = true;
        let has_more = self.states.pack_idle(rows, before);
        self.is_changing = false;
        has_more
    }

    /// Returns the senders that number their batches.
    pub(crate) fn senders(&self) -> &Senders {
        &self.senders
    }

    /// Returns the senders, for recovery.
    pub(crate) fn senders_mut(&mut self) -> &mut Senders {
        &mut self.senders
    }

    /// Returns the time of the latest sample; `None` when there never was one.
    pub(crate) fn latest(&self) -> Option<UnixMillis> {
        self.states.latest()
    }

    /// Returns the time of each granularity before which slots lack samples, because these slots
    /// were beyond the retention when the samples arrived. They may be within the retention again
    /// after a clock that was ahead is corrected.
    pub(crate) fn lacks_before(&self) -> &[UnixMillis] {
        &self.lacks_before
    }

    /// Returns the state of a series.
    pub(crate) fn state(&self, series: SeriesId) -> Option<&SeriesState> {
        self.states.get(series)
    }

    /// Adds the state and the classes of a new series, whose ID is the next number.
    pub(crate) fn add_series(&mut self, kind: Kind, history: History) {
        self.states.add(kind);
        self.series_classes.add(Some(history));
    }

    /// Returns the classes of the series.
    pub(crate) fn series_classes(&self) -> &SeriesClasses {
        &self.series_classes
    }

    /// Begins the last epoch of the rules; no sample has reached it yet.
    pub(crate) fn begin_epoch(&mut self, from: UnixMillis) {
        self.series_classes.begin_last(from);
    }

    /// Returns the states and the classes of the series, for recovery.
    pub(crate) fn series_mut(&mut self) -> (&mut SeriesStates, &mut SeriesClasses) {
        (&mut self.states, &mut self.series_classes)
    }

    /// Removes the states of series that have no samples left.
    pub(crate) fn forget(&mut self, series: &[SeriesId]) {
        for id in series {
            self.states.forget(*id);
        }
    }

    /// Records that the samples of series in a time range were erased.
    pub(crate) fn note_erased(&mut self, series: &[SeriesId], range: &Range<UnixMillis>) {
        self.is_changing = true;
        for id in series {
            self.states.note_erased(*id, &(range.start.0..range.end.0));
        }
        self.is_changing = false;
    }

    /// Returns the states of the series, for recovery and for merging series.
    pub(crate) fn states_mut(&mut self) -> &mut SeriesStates {
        &mut self.states
    }

    /// Returns the number of samples since the last call that are beyond the retention of every
    /// level.
    pub(crate) fn take_not_kept(&mut self) -> u64 {
        std::mem::take(&mut self.not_kept)
    }

    /// Returns whether a panic interrupted a change, after which the catalog differs from the
    /// journal.
    pub(crate) fn is_half_changed(&self) -> bool {
        self.is_changing
    }

    /// Returns the cells of histograms that are not frozen.
    pub(crate) fn histograms(&self) -> &HistogramMap {
        &self.histograms
    }

    /// Freezes the cells and states for a checkpoint. No other checkpoint may be running.
    pub(crate) fn freeze(&mut self) -> Arc<Frozen> {
        assert!(self.frozen.is_none(), "one checkpoint at a time");
        self.is_changing = true;
        self.states.freeze();
        let frozen = Arc::new(Frozen {
            through: self.applied,
            maps: std::mem::replace(
                &mut self.maps,
                vec![CellMap::default(); self.classes.levels().len()],
            ),
            histograms: std::mem::take(&mut self.histograms),
            senders: self.senders.take_changed(),
            stored_rows: AtomicU32::new(0),
        });
        self.frozen = Some(frozen.clone());
        self.is_changing = false;
        frozen
    }

    /// Returns up to `count` frozen rows of states from row `from` on, ascending.
    pub(crate) fn frozen_rows(&self, from: u32, count: usize) -> Vec<EncodedRow> {
        self.states.frozen_rows(from, count)
    }

    /// Returns the frozen cells while a checkpoint is running.
    pub(crate) fn frozen(&self) -> Option<&Arc<Frozen>> {
        self.frozen.as_ref()
    }

    /// Ends a checkpoint. Returns the frozen cells and rows, which are now in files, so that the
    /// caller can drop them without the catalog's lock.
    pub(crate) fn thaw(&mut self) -> impl Sized + use<> {
        (self.frozen.take(), self.states.thaw())
    }

    /// Returns the starts of the slots of a level that have cells in memory.
    pub(crate) fn slot_starts(&self, level: GranularityIndex) -> Vec<i64> {
        if level.0 >= self.maps.len() {
            return Vec::new();
        }
        let granularity = &self.classes.levels()[level.0];
        let range = self.classes.up_to(level);
        let frozen = self.frozen.iter().flat_map(|frozen| &frozen.maps[range.clone()]);
        let maps = self.maps[range.clone()].iter().chain(frozen);
        let starts = maps.flat_map(|map| map.slots(i64::MIN..i64::MAX).map(|(start, _)| start));
        starts.map(|start| granularity.slot_start(UnixMillis(start)).0).collect()
    }

    /// Returns the state of a series with its seen times, as bytes that do not depend on other
    /// series.
    pub(crate) fn state_bytes_of(&self, series: SeriesId) -> Vec<u8> {
        self.states.bytes_of(series)
    }

    /// Passes the cells of a level that are not frozen to `out`; see [`frozen::cells`].
    pub(crate) fn active_cells(
        &self,
        level: GranularityIndex,
        series: &[SeriesId],
        range: Range<i64>,
        out: impl FnMut(usize, i64, Cell),
    ) {
        frozen::cells(&self.maps, &self.classes, level, series, range, out);
    }
}
