//! The catalog: the accepted samples that are not yet in files of cells, in memory.
//!
//! The catalog is a pure function of the journal's records, each with the time by which it was
//! accepted: the same records in the same order give the same catalog, and recovery replays them.
//! Cells have the finest granularity that still keeps their time; a checkpoint or a query merges
//! the coarser ones from them. Beside the cells are the counter states and the senders' windows, as
//! of the same record.
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
    AcceptedBatch, Cell, Correction, GranularityIndex, GranularitySet, Keeping, Kind, SeriesId,
    SeriesState, TimeVerdict, TimesTally, UnixMillis, is_stale_marker,
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
    /// did not keep their time when they came.
    lacks_before: Vec<UnixMillis>,
    /// Set while something is changed.
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

    /// Bytes of the series' states, of those put aside, and of the times seen, about.
    pub(crate) fn state_bytes(&self) -> [usize; 3] {
        self.states.bytes()
    }

    /// The number of counters that are put aside.
    pub(crate) fn idle_series(&self) -> usize {
        self.states.idle_series()
    }

    /// Puts counters without a sample since a time aside, see [`SeriesStates::pack_idle`].
    pub(crate) fn pack_idle(&mut self, rows: Range<u32>, before: UnixMillis) -> bool {
        self.is_changing = true;
        let are_more = self.states.pack_idle(rows, before);
        self.is_changing = false;
        are_more
    }

    /// The senders that number their batches.
    pub(crate) fn senders(&self) -> &Senders {
        &self.senders
    }

    /// The senders, to be restored.
    pub(crate) fn senders_mut(&mut self) -> &mut Senders {
        &mut self.senders
    }

    /// Time of the latest sample; `None` when there never was one.
    pub(crate) fn latest(&self) -> Option<UnixMillis> {
        self.states.latest()
    }

    /// Slots of each granularity that begin before this time lack samples, because the granularity
    /// did not keep their time when they came. It may keep that time again, once a clock that was
    /// ahead is right.
    pub(crate) fn lacks_before(&self) -> &[UnixMillis] {
        &self.lacks_before
    }

    /// The state of a series.
    pub(crate) fn state(&self, series: SeriesId) -> Option<&SeriesState> {
        self.states.get(series)
    }

    /// Makes room for a new series; ids count up.
    pub(crate) fn add_series(&mut self, kind: Kind) {
        self.states.add(kind);
    }

    /// Forgets the states of series that have no more samples.
    pub(crate) fn forget(&mut self, series: &[SeriesId]) {
        for id in series {
            self.states.forget(*id);
        }
    }

    /// The states of the series, to be restored.
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
        let keeping = Keeping::new(&self.granularities, now);
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

    /// Settles which first readings of counters count whole, of batches that are accepted together.
    /// The first reading of a series without a start, which follows readings of another kind, counts
    /// nothing.
    pub(crate) fn settle_starts(
        &self,
        batches: &mut Cow<'_, [AcceptedBatch]>,
        (is_accepted, has_start): (impl Fn(usize) -> bool, impl Fn(SeriesId) -> bool),
        now: UnixMillis,
    ) {
        let keeping = Keeping::new(&self.granularities, now);
        let slot_start = |at| {
            let finest = keeping.finest(at).unwrap_or(GranularityIndex::FINEST);
            self.granularities[finest].slot_start(at)
        };
        rounds::settle(batches, (is_accepted, has_start), &self.states, slot_start);
    }

    /// Returns whether a panic cut a change short: the catalog differs from the journal then.
    pub(crate) fn is_half_changed(&self) -> bool {
        self.is_changing
    }

    fn apply_batch(&mut self, batch: &AcceptedBatch, keeping: &Keeping) -> TimesTally {
        let mut left = Left { tally: TimesTally::default(), corrections: Vec::new() };
        self.apply_samples(batch, keeping, &mut left);
        for (series, Correction { at, increase, rate }) in left.corrections {
            let finest = keeping.finest(at);
            note_lacking(&mut self.lacks_before, &self.granularities, finest, at);
            if let Some(finest) = finest {
                let slot = self.granularities[finest].slot_start(at).0;
                let map = &mut self.maps[finest.0];
                let mut place = map.place(slot);
                map.merge(&mut place, series, &Cell::correction(increase, rate));
            }
        }
        left.tally
    }

    fn apply_samples(&mut self, batch: &AcceptedBatch, keeping: &Keeping, left: &mut Left) {
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
                && !left.is_new(self.states.note_time(series, at, window_ms))
            {
                continue;
            }
            // Without a living granularity the counter states still move on.
            let slot = slots.at(at, |finest, start| {
                note_lacking(&mut self.lacks_before, &granularities, finest, start);
                Some(self.maps[finest?.0].place(start.0))
            });
            // Which first readings count was settled before the journal.
            let start = batch.start(index);
            let observed = self.states.observe(series, at, value, start, slot.start);
            if let (Some(finest), Some(place)) = (slot.finest, slot.value) {
                self.maps[finest.0].merge(place, series, &observed.cell);
            }
            if let Some(correction) = observed.correction {
                left.corrections.push((series, correction));
            }
        }
    }

    /// Bytes of memory that batches would take when they are applied, at most.
    pub(crate) fn growth(&self, batches: &[AcceptedBatch], now: UnixMillis) -> usize {
        let keeping = Keeping::new(&self.granularities, now);
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

    /// Sets cells and states aside for a checkpoint. There must be no other one under way.
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

    /// Some of the frozen rows of states, from a row on, ascending.
    pub(crate) fn frozen_rows(&self, from: u32, count: usize) -> Vec<EncodedRow> {
        self.states.frozen_rows(from, count)
    }

    /// The cells set aside, while a checkpoint is under way.
    pub(crate) fn frozen(&self) -> Option<&Arc<Frozen>> {
        self.frozen.as_ref()
    }

    /// Forgets what was set aside: it is in files now. What is returned is dropped without the
    /// catalog's lock.
    pub(crate) fn thaw(&mut self) -> impl Sized + use<> {
        (self.frozen.take(), self.states.thaw())
    }

    /// Hands out the cells of series that are not yet set aside, see [`frozen::cells`].
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

/// Notes that the granularities that are finer than `finest` do not get something of a slot of it.
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
struct Left {
    tally: TimesTally,
    /// The parts of later readings that late readings replace.
    corrections: Vec<(SeriesId, Correction)>,
}

impl Left {
    fn is_new(&mut self, verdict: TimeVerdict) -> bool {
        match verdict {
            TimeVerdict::New => return true,
            TimeVerdict::Duplicate => self.tally.duplicates += 1,
            TimeVerdict::TooOld => self.tally.out_of_order += 1,
        }
        false
    }
}
