//! The catalog: the accepted samples in memory that are not yet in the head or in documents.
//!
//! The catalog is a pure function of the journal's records, each with the time at which it was
//! accepted: the same records in the same order produce the same catalog, so recovery replays them.
//! Cells have the finest granularity that still keeps their time; a checkpoint or a query merges
//! them into coarser cells. The catalog also contains the counter states and the senders' windows,
//! as of the same record.
//!
//! Must never know: files.

pub(crate) mod cell_map;
pub(crate) mod cell_row;
pub(crate) mod fan_out;
pub(crate) mod frozen;
mod rounds;
pub(crate) mod senders;
mod slots;

use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, atomic::AtomicU32},
};

use crate::{
    model::{
        AcceptedBatch, Cell, Correction, GranularityIndex, Histogram, HistogramCell, Kind,
        RetentionStarts, SeriesId, SeriesState, TimeVerdict, TimesTally, UnixMillis,
        is_stale_marker,
    },
    store::{
        classes::{
            Class, Classes,
            series_classes::{History, SeriesClasses},
        },
        histograms::map::HistogramMap,
        states::{EncodedRow, SeriesStates},
    },
};
use cell_map::{CellMap, Growth, SlotCursor};
use frozen::Frozen;
use senders::Senders;
use slots::Slots;

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

    /// Applies the batches of one journal record, which were accepted at `now`. Returns the tally
    /// of the times of each batch.
    pub(crate) fn apply<'a>(
        &mut self,
        sequence: u64,
        batches: impl Iterator<Item = &'a AcceptedBatch>,
        now: UnixMillis,
    ) -> Vec<TimesTally> {
        assert_eq!(sequence, self.applied + 1, "journal records are applied in order, once");
        self.is_changing = true;
        self.applied = sequence;
        let keepings = keepings(&self.classes, now);
        let mut apply = |batch: &AcceptedBatch| {
            if let Some(number) = batch.number() {
                self.senders.apply(number, now);
            }
            self.apply_batch(batch, &keepings)
        };
        let tallies = batches.map(&mut apply).collect();
        self.is_changing = false;
        tallies
    }

    /// Decides, for batches that are accepted together, which first readings of counters add the
    /// growth since the start of the counter. A series for which `has_start` is false continues a
    /// series of another kind, so its first reading adds nothing.
    pub(crate) fn settle_starts(
        &self,
        batches: &mut Cow<'_, [AcceptedBatch]>,
        (is_accepted, has_start): (impl Fn(usize) -> bool, impl Fn(SeriesId) -> bool),
        now: UnixMillis,
    ) {
        let keepings = keepings(&self.classes, now);
        let slot_start = |series, at| {
            let class = self.series_classes.at(series, at);
            let finest = keepings[usize::from(class.0)].finest(at);
            let finest = finest.unwrap_or(GranularityIndex::FINEST);
            self.classes.get(class).levels[finest].slot_start(at)
        };
        rounds::settle(batches, (is_accepted, has_start), &self.states, slot_start);
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

    fn apply_batch(&mut self, batch: &AcceptedBatch, keepings: &[RetentionStarts]) -> TimesTally {
        let mut effects = Effects { tally: TimesTally::default(), corrections: Vec::new() };
        self.apply_samples(batch, keepings, &mut effects);
        for (series, Correction { at, increase, rate }) in effects.corrections {
            let class = self.series_classes.at(series, at);
            let finest = keepings[usize::from(class.0)].finest(at);
            let class = self.classes.get(class);
            note_lacking(&mut self.lacks_before, class, finest, at);
            if let Some(finest) = finest {
                let slot = class.levels[finest].slot_start(at).0;
                let map = &mut self.maps[class.stored(finest).0];
                let mut cursor = map.cursor(slot);
                map.merge(&mut cursor, series, &Cell::correction(increase, rate));
            }
        }
        effects.tally
    }

    fn apply_samples(
        &mut self,
        batch: &AcceptedBatch,
        keepings: &[RetentionStarts],
        effects: &mut Effects,
    ) {
        let classes = self.classes.clone();
        let mut all_slots: Vec<Slots<'_, Option<SlotCursor>>> = slots_of(&classes, keepings);
        let window_ms = batch.window_ms();
        let mut histograms = batch.histograms.iter().peekable();
        let mut next_histogram = histograms.peek().map_or(usize::MAX, |next| next.index as usize);
        for (index, (series, value)) in batch.series.iter().zip(&batch.values).enumerate() {
            let (at, series, value) = (batch.time(index), *series, *value);
            if is_stale_marker(value) {
                self.states.end(series, at);
                continue;
            }
            if let Some(window_ms) = window_ms
                && !effects.is_new(self.states.note_time(series, at, window_ms))
            {
                continue;
            }
            // The counter state is updated even when the sample is beyond every retention.
            let of_series = self.series_classes.at(series, at);
            let class = classes.get(of_series);
            let slot = all_slots[usize::from(of_series.0)].at(at, |finest, start| {
                note_lacking(&mut self.lacks_before, class, finest, start);
                Some(self.maps[class.stored(finest?).0].cursor(start.0))
            });
            self.not_kept += u64::from(slot.finest.is_none());
            // `settle_starts` decided which first readings count before the record was written.
            let start = batch.start(index);
            let observed = self.states.observe(series, at, value, start, slot.start);
            if let (Some(finest), Some(cursor)) = (slot.finest, slot.value) {
                self.maps[class.stored(finest).0].merge(cursor, series, &observed.cell);
            }
            if let Some(correction) = observed.correction {
                effects.corrections.push((series, correction));
            }
            if next_histogram <= index {
                let slot = (slot.start, slot.finest.map(|finest| class.stored(finest)));
                // Samples that do not count have no effect.
                while let Some(sample) = histograms.next_if(|next| next.index as usize <= index) {
                    if sample.index as usize == index {
                        let sample = (series, at, start, &sample.histogram);
                        self.apply_histogram(sample, slot, keepings);
                    }
                }
                next_histogram = histograms.peek().map_or(usize::MAX, |next| next.index as usize);
            }
        }
    }

    /// Adds the histogram of a sample, whose count was added before, to its slot.
    #[cold]
    fn apply_histogram(
        &mut self,
        (series, at, start, histogram): (SeriesId, UnixMillis, i64, &Histogram),
        (slot, level): (UnixMillis, Option<GranularityIndex>),
        keepings: &[RetentionStarts],
    ) {
        let observed = self.states.observe_histogram(series, (at, start), histogram);
        if let Some(level) = level {
            let offset = (at.0 - slot.0) as u32;
            let cell = HistogramCell::single(offset, histogram.clone(), observed.increase);
            self.histograms.merge(level, (series, slot.0), &cell);
        }
        if let Some((at, change)) = observed.correction {
            let class = self.series_classes.at(series, at);
            let finest = keepings[usize::from(class.0)].finest(at);
            let class = self.classes.get(class);
            if let Some(finest) = finest {
                let slot = class.levels[finest].slot_start(at).0;
                let cell = HistogramCell::correction(change);
                self.histograms.merge(class.stored(finest), (series, slot), &cell);
            }
        }
    }

    /// Returns the cells of histograms that are not frozen.
    pub(crate) fn histograms(&self) -> &HistogramMap {
        &self.histograms
    }

    /// Returns the maximum number of bytes that batches would add to memory when they are applied.
    pub(crate) fn growth(&self, batches: &[AcceptedBatch], now: UnixMillis) -> usize {
        let keepings = keepings(&self.classes, now);
        let mut bytes = 0;
        for batch in batches {
            let mut all_slots: Vec<Slots<'_, Option<Growth<'_>>>> =
                slots_of(&self.classes, &keepings);
            for (index, series) in batch.series.iter().enumerate() {
                let at = batch.time(index);
                let class = self.series_classes.at(*series, at);
                let make = |finest: Option<GranularityIndex>, start: UnixMillis| {
                    let level = self.classes.get(class).stored(finest?);
                    Some(self.maps[level.0].growth(start.0))
                };
                let growth = all_slots[usize::from(class.0)].at(at, make).value;
                bytes += growth.as_mut().map_or(0, |growth| growth.add(*series));
            }
            // A cell has three histograms, and the total may have the buckets of both. The state of
            // a counter remembers the reading.
            let histograms = batch.histograms.iter().map(|sample| sample.histogram.bytes());
            bytes += histograms.map(|histogram| 5 * histogram).sum::<usize>();
        }
        bytes
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

/// Returns the starts of the retentions of each class.
fn keepings(classes: &Classes, now: UnixMillis) -> Vec<RetentionStarts> {
    classes.all().iter().map(|class| RetentionStarts::new(&class.levels, now)).collect()
}

/// Returns an empty memory of slots for each class.
fn slots_of<'a, T>(classes: &'a Classes, keepings: &'a [RetentionStarts]) -> Vec<Slots<'a, T>> {
    let all = classes.all().iter().zip(keepings);
    all.map(|(class, keeping)| Slots::new(&class.levels, keeping)).collect()
}

/// Records that the levels of a class finer than `finest` lack a sample in the slot of `finest` at
/// `at`. Without `finest`, each level lacks a sample in its slot at `at`.
fn note_lacking(
    lacks_before: &mut [UnixMillis],
    class: &Class,
    finest: Option<GranularityIndex>,
    at: UnixMillis,
) {
    let finer = finest.map_or(class.levels.count(), |finest| finest.0);
    for index in (0..finer).map(GranularityIndex) {
        let slot = &class.levels[finest.unwrap_or(index)];
        let end = slot.slot_start(at).plus(slot.width_ms);
        let lacks_before = &mut lacks_before[class.stored(index).0];
        *lacks_before = end.max(*lacks_before);
    }
}

/// The effects of a batch's samples other than cells.
struct Effects {
    tally: TimesTally,
    /// The corrections of later readings by late readings.
    corrections: Vec<(SeriesId, Correction)>,
}

impl Effects {
    fn is_new(&mut self, verdict: TimeVerdict) -> bool {
        match verdict {
            TimeVerdict::New => return true,
            TimeVerdict::Duplicate => self.tally.duplicates += 1,
            TimeVerdict::TooOld => self.tally.out_of_order += 1,
        }
        false
    }
}
