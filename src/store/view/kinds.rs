//! Series whose kind changed: the cells of each stretch are converted to one kind. For a counter,
//! the growth from the last reading of a stretch to the first reading of the next stretch is added,
//! as in Prometheus, where samples have no kind.
//!
//! Must never know: who requests a kind, and why.

use std::{collections::HashMap, sync::OnceLock};

use super::View;
use crate::{
    model::{Cell, GranularityIndex, Kind, SeriesId, UnixMillis},
    store::{Columns, documents::Slot, documents::merge_equal, error::StoreError},
};

/// The number of slots before a view, at each granularity, in which the readings before the view
/// are searched.
const SLOTS_BEFORE: i64 = 64;

/// A part of a series of several kinds, or the series itself.
pub type Stretch = (SeriesId, Kind);

/// The last readings of the stretches before a view, by series.
type ReadingsBefore = HashMap<SeriesId, Vec<ReadingBefore>>;

/// The parts of the series in a view.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The parts of each series, without the series itself.
    pub(super) of: HashMap<SeriesId, Vec<SeriesId>>,
    /// The parts of each series of several kinds, including the series itself, with their kinds.
    pub(super) stretches: HashMap<SeriesId, Vec<Stretch>>,
    /// The readings before the view, which are searched when a counter needs them.
    before: OnceLock<ReadingsBefore>,
}

/// The last reading of a stretch before a cell.
#[derive(Debug, Clone, Copy)]
struct ReadingBefore {
    at: i64,
    value: f64,
    of: Stretch,
}

impl View {
    /// Returns the parts of a series of several kinds, including the series itself, with their
    /// kinds; `None` for a series of one kind.
    pub fn stretches(&self, series: SeriesId) -> Option<&[Stretch]> {
        self.parts.stretches.get(&series).map(Vec::as_slice)
    }

    /// Calls `visit` with the slots of each stretch, as they were stored, and with their kind.
    ///
    /// # Errors
    /// When the slots cannot be read.
    pub fn each_stretch(
        &self,
        stretches: &[Stretch],
        mut visit: impl FnMut(Stretch, &mut Vec<Slot>),
    ) -> Result<(), StoreError> {
        let mut slots = Vec::new();
        for stretch in stretches {
            self.slots_apart(stretch.0, Columns::ALL, &mut slots)?;
            visit(*stretch, &mut slots);
        }
        Ok(())
    }

    /// Replaces `slots` with the slots of a series of several kinds, as cells of one kind. Numbers
    /// and the counts of histograms are not converted to each other: cells of the other sort are
    /// left out.
    pub fn slots_as(
        &self,
        series: SeriesId,
        kind: Kind,
        slots: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        let mut all = Vec::new();
        let is_alike = |of: &Stretch| of.1.is_histogram() == kind.is_histogram();
        let stretches = self.stretches(series).unwrap_or_default().iter().copied();
        let (stretches, kind) = (stretches.filter(is_alike).collect::<Vec<_>>(), kind.of_counts());
        self.each_stretch(&stretches, |of, slots| {
            all.extend(slots.drain(..).map(|slot| (slot, (of.0, of.1.of_counts()))));
        })?;
        all.sort_by_key(|(slot, _)| (first_at(slot), last_at(slot)));
        slots.clear();
        if kind == Kind::Counter && all.iter().any(|(slot, _)| slot.cell.n > 0) {
            let mut before = self.readings_before(series)?;
            before.retain(|reading| stretches.iter().any(|(id, _)| *id == reading.of.0));
            let mut growth = Growth { before };
            slots.extend(all.into_iter().map(|(slot, of)| growth.count(slot, of)));
        } else {
            let converted = |cell, of: Stretch| converted(cell, of.1, kind);
            slots
                .extend(all.into_iter().map(|(slot, of)| slot_of(&slot, converted(slot.cell, of))));
        }
        merge_equal(slots);
        slots.retain(|slot| !slot.cell.is_empty());
        Ok(())
    }

    /// Returns the last readings of a series' stretches before the view. All series of the view
    /// share one search.
    fn readings_before(&self, series: SeriesId) -> Result<Vec<ReadingBefore>, StoreError> {
        let before = &self.parts.before;
        if before.get().is_none() {
            let found = self.search_before()?;
            before.get_or_init(|| found);
        }
        let found = before.get_or_init(ReadingsBefore::default);
        Ok(found.get(&series).cloned().unwrap_or_default())
    }

    /// Searches the granularity of the view and, further back, coarser ones.
    fn search_before(&self) -> Result<ReadingsBefore, StoreError> {
        let mut out = ReadingsBefore::new();
        let mut missing: Vec<_> =
            self.series.iter().filter_map(|id| Some((*id, self.stretches(*id)?))).collect();
        let coarsest = self.store.granularities().coarsest();
        for index in (self.index.0..=coarsest.0.max(self.index.0)).map(GranularityIndex) {
            if missing.is_empty() {
                break;
            }
            let granularity = self.store.granularity(index);
            let end = granularity.slot_start(UnixMillis(self.range.start));
            let from = end.minus(SLOTS_BEFORE.saturating_mul(granularity.width_ms));
            let parts = missing.iter().flat_map(|(_, stretches)| *stretches);
            let ids = parts.map(|(id, _)| *id).collect();
            let view = self.store.view_apart(index, from..end, ids)?;
            for (series, stretches) in std::mem::take(&mut missing) {
                let mut found = Vec::new();
                view.each_stretch(stretches, |of, slots| {
                    let last = slots.iter().rfind(|slot| slot.cell.n > 0);
                    let of = (of.0, of.1.of_counts());
                    found.extend(last.map(|slot| ReadingBefore::of(slot, of)));
                })?;
                if found.is_empty() {
                    missing.push((series, stretches));
                } else {
                    out.insert(series, found);
                }
            }
        }
        Ok(out)
    }
}

impl ReadingBefore {
    fn of(slot: &Slot, of: Stretch) -> Self {
        Self { at: last_at(slot), value: slot.cell.last, of }
    }
}

/// The growth of a series of several kinds, whose cells are counted in order of time.
struct Growth {
    /// The last reading of each stretch so far.
    before: Vec<ReadingBefore>,
}

impl Growth {
    /// Returns a cell as a cell of a counter. Together, the cells count the growth from each
    /// reading to the next.
    fn count(&mut self, slot: Slot, of: Stretch) -> Slot {
        let cell = converted(slot.cell, of.1, Kind::Counter);
        if slot.cell.n == 0 {
            return slot_of(&slot, cell);
        }
        let newest = self.before.iter().max_by_key(|before| before.at).copied();
        let position = self.before.iter().position(|before| before.of.0 == of.0);
        let both_are_levels =
            |newest: &ReadingBefore| newest.of.1 != Kind::Delta && of.1 != Kind::Delta;
        let cell = match newest.filter(both_are_levels) {
            // The growth up to the newest reading already includes the growth of this cell.
            Some(newest) if last_at(&slot) <= newest.at => counted(cell, 0.0),
            Some(newest) if first_at(&slot) <= newest.at => {
                counted(cell, growth(newest.value, slot.cell.last))
            }
            // A counter's cell includes the growth since the previous reading of its stretch.
            Some(newest) if of.1 == Kind::Counter && newest.of.0 == of.0 => cell,
            Some(newest) => {
                let of_counter = position.filter(|_| of.1 == Kind::Counter);
                let included = of_counter
                    .map_or(0.0, |position| growth(self.before[position].value, slot.cell.first));
                let grown = growth(newest.value, slot.cell.first);
                let rate = rate(grown, first_at(&slot) - newest.at);
                let mut cell = cell;
                cell.merge(&Cell::correction(grown - included, rate));
                cell
            }
            None => cell,
        };
        let last = ReadingBefore::of(&slot, of);
        match position {
            Some(position) => self.before[position] = last,
            None => self.before.push(last),
        }
        slot_of(&slot, cell)
    }
}

fn slot_of(slot: &Slot, cell: Cell) -> Slot {
    Slot { start: slot.start, cell }
}

fn first_at(slot: &Slot) -> i64 {
    slot.start.0 + i64::from(slot.cell.first_at)
}

fn last_at(slot: &Slot) -> i64 {
    slot.start.0 + i64::from(slot.cell.last_at)
}

/// Converts a cell to another kind. The increase since the reading before the cell is not counted.
fn converted(cell: Cell, from: Kind, to: Kind) -> Cell {
    match (from.of_counts(), to.of_counts()) {
        (Kind::Counter, Kind::Counter) | (Kind::Gauge | Kind::Delta, Kind::Gauge | Kind::Delta) => {
            cell
        }
        // A counter's correction has no readings.
        _ if cell.n == 0 => Cell::EMPTY,
        (Kind::Gauge, Kind::Counter) => counted(cell, growth_within(&cell)),
        (Kind::Delta, Kind::Counter) => counted(cell, finite(cell.sum)),
        (Kind::Counter, Kind::Gauge) => {
            let (low, high) = (cell.first.min(cell.last), cell.first.max(cell.last));
            let mean = if cell.n == 1 { cell.first } else { f64::midpoint(cell.first, cell.last) };
            Cell { sum: mean * f64::from(cell.n), min: low, max: high, m2: 0.0, ..cell }
        }
        _ => {
            let each = cell.sum / f64::from(cell.n);
            Cell { min: each, max: each, first: each, last: each, m2: 0.0, ..cell }
        }
    }
}

/// Returns the cell of a counter that grew by `grown` from its first to its last reading.
fn counted(cell: Cell, grown: f64) -> Cell {
    let mut out = Cell { sum: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY, m2: 0.0, ..cell };
    let passed = i64::from(cell.last_at) - i64::from(cell.first_at);
    out.merge(&Cell::correction(grown, rate(grown, passed)));
    out
}

/// Returns the growth of a gauge from the first to the last reading of a cell. If the first reading
/// is the lowest and the last the highest, the growth is their difference. Otherwise, one reset
/// after the highest reading is assumed.
fn growth_within(cell: &Cell) -> f64 {
    if cell.n < 3 || (cell.min >= cell.first && cell.max <= cell.last) {
        return if cell.n < 2 { 0.0 } else { growth(cell.first, cell.last) };
    }
    finite((cell.max - cell.first).max(0.0) + cell.last)
}

/// Returns the increase from one reading to the next; a decrease is a reset.
fn growth(from: f64, to: f64) -> f64 {
    finite(if to < from { to } else { to - from })
}

fn rate(grown: f64, passed_ms: i64) -> Option<f64> {
    (passed_ms > 0).then(|| grown * 1000.0 / passed_ms as f64)
}

/// Replaces the growth from or to a reading that is not finite with zero.
fn finite(grown: f64) -> f64 {
    if grown.is_finite() { grown } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gauge(values: &[f64]) -> Cell {
        let mut cell = Cell::EMPTY;
        for (at, value) in (0..).step_by(10_000).zip(values) {
            cell.merge(&Cell::single(at, *value));
        }
        cell
    }

    #[test]
    fn a_gauge_as_a_counter_grows_as_in_prometheus_up_to_one_reset() {
        for (values, sum, rates) in [
            (&[5.0][..], 0.0, (f64::INFINITY, f64::NEG_INFINITY)),
            (&[5.0, 8.0], 3.0, (0.3, 0.3)),
            (&[5.0, 2.0], 2.0, (0.2, 0.2)),
            (&[5.0, 6.0, 9.0], 4.0, (0.2, 0.2)),
            (&[5.0, 9.0, 1.0, 3.0], 7.0, (7.0 / 30.0, 7.0 / 30.0)),
            (&[5.0, f64::NAN], 0.0, (0.0, 0.0)),
        ] {
            let cell = converted(gauge(values), Kind::Gauge, Kind::Counter);
            assert_eq!((cell.sum, (cell.min, cell.max)), (sum, rates), "{values:?}");
            assert_eq!((cell.n, cell.first), (values.len() as u32, values[0]));
        }
    }

    #[test]
    fn a_counter_becomes_a_line_as_a_gauge_and_its_increase_as_a_delta() {
        let mut cell = Cell::reading(0, 4.0, 1.0, Some(0.1));
        (1..5).for_each(|at| cell.merge(&Cell::reading(at, f64::from(at) + 4.0, 1.0, Some(1.0))));
        let level = converted(cell, Kind::Counter, Kind::Gauge);
        assert_eq!((level.sum, level.min, level.max, level.n), (30.0, 4.0, 8.0, 5));
        let changes = converted(cell, Kind::Counter, Kind::Delta);
        assert_eq!((changes.sum, changes.min, changes.last), (5.0, 1.0, 1.0));
        let back = converted(changes, Kind::Delta, Kind::Counter);
        assert_eq!((back.sum, back.n), (5.0, 5));
        let correction = Cell::correction(3.0, None);
        assert!(converted(correction, Kind::Counter, Kind::Gauge).is_empty());
    }
}
