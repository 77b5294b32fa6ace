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
mod idle;
mod rounds;
pub(crate) mod senders;
pub(crate) mod series_states;
mod slots;
mod state_row;

use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, atomic::AtomicU32},
};

use crate::model::{
    AcceptedBatch, Cell, Correction, GranularityIndex, GranularitySet, Kind, RetentionStarts,
    SeriesId, SeriesState, TimeVerdict, TimesTally, UnixMillis, is_stale_marker,
};
use cell_map::{CellMap, Growth, SlotPlace};
use frozen::Frozen;
use senders::Senders;
use series_states::{EncodedRow, SeriesStates};
use slots::Slots;

/// Cells, counter states and senders' windows, as of one journal record.
#[derive(Debug)]
pub(crate) struct Catalog {
    granularities: Arc<GranularitySet>,
    maps: Vec<CellMap>,
    frozen: Option<Arc<Frozen>>,
    states: SeriesStates,
    senders: Senders,
    applied: u64,
    /// Slots of each granularity that begin before this time lack samples, because the granularity
    /// did not keep their time when the samples arrived.
    lacks_before: Vec<UnixMillis>,
    /// True during a change, and for ever after a panic interrupted one.
    is_changing: bool,
}

impl Catalog {
    pub(crate) fn new(granularities: Arc<GranularitySet>, applied: u64) -> Self {
        let maps = vec![CellMap::default(); granularities.count()];
        let lacks_before = vec![UnixMillis::EARLIEST; granularities.count()];
        Self {
            granularities,
            maps,
            frozen: None,
            states: SeriesStates::default(),
            senders: Senders::default(),
            applied,
            lacks_before,
            is_changing: false,
        }
    }

    /// The last journal record that is in the catalog.
    pub(crate) fn applied(&self) -> u64 {
        self.applied
    }

    /// Bytes of cells in memory, frozen ones included.
    pub(crate) fn bytes(&self) -> usize {
        let frozen = self.frozen.iter().flat_map(|frozen| &frozen.maps);
        self.maps.iter().chain(frozen).map(CellMap::bytes).sum()
    }

    /// Bytes of cells that the next checkpoint would write.
    pub(crate) fn active_bytes(&self) -> usize {
        self.maps.iter().map(CellMap::bytes).sum()
    }

    /// The approximate bytes of the series' states, of packed states, and of the times seen.
    pub(crate) fn state_bytes(&self) -> [usize; 3] {
        self.states.bytes()
    }

    /// The number of counters that are packed.
    pub(crate) fn idle_series(&self) -> usize {
        self.states.idle_series()
    }

    /// Packs counters without a sample since `before`, see [`SeriesStates::pack_idle`].
    pub(crate) fn pack_idle(&mut self, rows: Range<u32>, before: UnixMillis) -> bool {
        self.is_changing = true;
        let has_more = self.states.pack_idle(rows, before);
        self.is_changing = false;
        has_more
    }

    /// The senders that number their batches.
    pub(crate) fn senders(&self) -> &Senders {
        &self.senders
    }

    /// The senders, for recovery.
    pub(crate) fn senders_mut(&mut self) -> &mut Senders {
        &mut self.senders
    }

    /// Time of the latest sample; `None` when there never was one.
    pub(crate) fn latest(&self) -> Option<UnixMillis> {
        self.states.latest()
    }

    /// Slots of each granularity that begin before this time lack samples, because the granularity
    /// did not keep their time when the samples arrived. The granularity may keep that time again,
    /// once a clock that was ahead is right.
    pub(crate) fn lacks_before(&self) -> &[UnixMillis] {
        &self.lacks_before
    }

    /// The state of a series.
    pub(crate) fn state(&self, series: SeriesId) -> Option<&SeriesState> {
        self.states.get(series)
    }

    /// Adds the state of a new series; ids count up.
    pub(crate) fn add_series(&mut self, kind: Kind) {
        self.states.add(kind);
    }

    /// Forgets the states of series that have no more samples.
    pub(crate) fn forget(&mut self, series: &[SeriesId]) {
        for id in series {
            self.states.forget(*id);
        }
    }

    /// The states of the series, for recovery and for merging series.
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
        let keeping = RetentionStarts::new(&self.granularities, now);
        let mut apply = |batch: &AcceptedBatch| {
            if let Some(number) = batch.number() {
                self.senders.apply(number, now);
            }
            self.apply_batch(batch, &keeping)
        };
        let tallies = batches.map(&mut apply).collect();
        self.is_changing = false;
        tallies
    }

    /// Decides, for batches that are accepted together, which first readings of counters count from
    /// the start of their counter. A series for which `has_start` is false continues a series of
    /// another kind, so its first reading counts nothing.
    pub(crate) fn settle_starts(
        &self,
        batches: &mut Cow<'_, [AcceptedBatch]>,
        (is_accepted, has_start): (impl Fn(usize) -> bool, impl Fn(SeriesId) -> bool),
        now: UnixMillis,
    ) {
        let keeping = RetentionStarts::new(&self.granularities, now);
        let slot_start = |at| {
            let finest = keeping.finest(at).unwrap_or(GranularityIndex::FINEST);
            self.granularities[finest].slot_start(at)
        };
        rounds::settle(batches, (is_accepted, has_start), &self.states, slot_start);
    }

    /// Returns whether a panic interrupted a change, after which the catalog differs from the
    /// journal.
    pub(crate) fn is_half_changed(&self) -> bool {
        self.is_changing
    }

    fn apply_batch(&mut self, batch: &AcceptedBatch, keeping: &RetentionStarts) -> TimesTally {
        let mut effects = Effects { tally: TimesTally::default(), corrections: Vec::new() };
        self.apply_samples(batch, keeping, &mut effects);
        for (series, Correction { at, increase, rate }) in effects.corrections {
            let finest = keeping.finest(at);
            note_lacking(&mut self.lacks_before, &self.granularities, finest, at);
            if let Some(finest) = finest {
                let slot = self.granularities[finest].slot_start(at).0;
                let map = &mut self.maps[finest.0];
                let mut place = map.place(slot);
                map.merge(&mut place, series, &Cell::correction(increase, rate));
            }
        }
        effects.tally
    }

    fn apply_samples(
        &mut self,
        batch: &AcceptedBatch,
        keeping: &RetentionStarts,
        effects: &mut Effects,
    ) {
        let granularities = self.granularities.clone();
        let mut slots: Slots<'_, Option<SlotPlace>> = Slots::new(&granularities, keeping);
        let window_ms = batch.window_ms();
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
            // When no granularity keeps the time, the counter state is updated nevertheless.
            let slot = slots.at(at, |finest, start| {
                note_lacking(&mut self.lacks_before, &granularities, finest, start);
                Some(self.maps[finest?.0].place(start.0))
            });
            // `settle_starts` decided before the journal which first readings count.
            let start = batch.start(index);
            let observed = self.states.observe(series, at, value, start, slot.start);
            if let (Some(finest), Some(place)) = (slot.finest, slot.value) {
                self.maps[finest.0].merge(place, series, &observed.cell);
            }
            if let Some(correction) = observed.correction {
                effects.corrections.push((series, correction));
            }
        }
    }

    /// The maximum number of bytes that batches would add to memory when they are applied.
    pub(crate) fn growth(&self, batches: &[AcceptedBatch], now: UnixMillis) -> usize {
        let keeping = RetentionStarts::new(&self.granularities, now);
        let mut bytes = 0;
        for batch in batches {
            let mut slots: Slots<'_, Option<Growth<'_>>> =
                Slots::new(&self.granularities, &keeping);
            for (index, series) in batch.series.iter().enumerate() {
                let make = |finest: Option<GranularityIndex>, start: UnixMillis| {
                    Some(self.maps[finest?.0].growth(start.0))
                };
                let growth = slots.at(batch.time(index), make).value;
                bytes += growth.as_mut().map_or(0, |growth| growth.add(*series));
            }
        }
        bytes
    }

    /// Sets cells and states aside for a checkpoint. No other checkpoint may be under way.
    pub(crate) fn freeze(&mut self) -> Arc<Frozen> {
        assert!(self.frozen.is_none(), "one checkpoint at a time");
        self.is_changing = true;
        self.states.freeze();
        let frozen = Arc::new(Frozen {
            through: self.applied,
            maps: std::mem::replace(
                &mut self.maps,
                vec![CellMap::default(); self.granularities.count()],
            ),
            senders: self.senders.take_changed(),
            stored_rows: AtomicU32::new(0),
        });
        self.frozen = Some(frozen.clone());
        self.is_changing = false;
        frozen
    }

    /// Up to `count` frozen rows of states from row `from` on, ascending.
    pub(crate) fn frozen_rows(&self, from: u32, count: usize) -> Vec<EncodedRow> {
        self.states.frozen_rows(from, count)
    }

    /// The cells set aside, while a checkpoint is under way.
    pub(crate) fn frozen(&self) -> Option<&Arc<Frozen>> {
        self.frozen.as_ref()
    }

    /// Returns the frozen cells and rows, which are in files now, so that the caller drops them
    /// without the catalog's lock.
    pub(crate) fn thaw(&mut self) -> impl Sized + use<> {
        (self.frozen.take(), self.states.thaw())
    }

    /// Passes the cells of series that are not frozen to `out`, see [`frozen::cells`].
    pub(crate) fn active_cells(
        &self,
        granularity: GranularityIndex,
        series: &[SeriesId],
        range: Range<i64>,
        out: impl FnMut(usize, i64, Cell),
    ) {
        frozen::cells(&self.maps, &self.granularities, granularity, series, range, out);
    }
}

/// Notes that the granularities finer than `finest` lack a sample in the slot of `finest` at `at`.
/// Without `finest`, every granularity lacks a sample in its own slot.
fn note_lacking(
    lacks_before: &mut [UnixMillis],
    granularities: &GranularitySet,
    finest: Option<GranularityIndex>,
    at: UnixMillis,
) {
    let finer = finest.map_or(granularities.count(), |finest| finest.0);
    let width = |index| granularities[index].width_ms;
    for (index, lacks_before) in (0..finer).map(GranularityIndex).zip(lacks_before) {
        let slot = finest.unwrap_or(index);
        let end = granularities[slot].slot_start(at).plus(width(slot));
        *lacks_before = end.max(*lacks_before);
    }
}

/// The changes that the samples of a batch cause besides cells.
struct Effects {
    tally: TimesTally,
    /// The corrections that late readings make to later ones.
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
