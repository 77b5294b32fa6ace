//! Cells with the times of their readings.
//!
//! Must never know: the store, the tree.

use crate::{
    model::{Cell, Kind, UnixMillis},
    store::Slot,
};

/// The time and the value of a known sample.
pub(crate) type Sample = (i64, f64);

/// A slot buffer is reused when its unused capacity is at most its length divided by this number.
const SURPLUS_DIVISOR: usize = 8;

/// A cell with the times of its readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimedCell {
    /// Time of the first reading, Unix milliseconds.
    pub(crate) first_at: i64,
    /// Time of the last reading.
    pub(crate) last_at: i64,
    /// Number of samples.
    pub(crate) n: u32,
    /// The sum; see [`Cell`].
    pub(crate) sum: f64,
    /// The smallest value or rate; see [`Cell`].
    pub(crate) min: f64,
    /// The largest value or rate; see [`Cell`].
    pub(crate) max: f64,
    /// The first value; see [`Cell`].
    pub(crate) first: f64,
    /// The last value; see [`Cell`].
    pub(crate) last: f64,
    /// The second moment; see [`Cell`].
    pub(crate) m2: f64,
    /// The kind of the cell in a series of several kinds; `None` for the kind of the series.
    pub(crate) kind: Option<Kind>,
}

impl TimedCell {
    /// Creates a cell from one sample.
    pub(crate) fn sample(at: i64, value: f64) -> Self {
        Self {
            first_at: at,
            last_at: at,
            n: 1,
            sum: value,
            min: value,
            max: value,
            first: value,
            last: value,
            m2: 0.0,
            kind: None,
        }
    }

    fn of_slot(start: UnixMillis, cell: &Cell) -> Self {
        Self {
            first_at: start.0 + i64::from(cell.first_at),
            last_at: start.0 + i64::from(cell.last_at),
            n: cell.n,
            sum: cell.sum,
            min: cell.min,
            max: cell.max,
            first: cell.first,
            last: cell.last,
            m2: cell.m2,
            kind: None,
        }
    }

    /// Returns true when some samples of the cell are unknown.
    pub(crate) fn is_merged(&self) -> bool {
        self.n > 2
    }

    /// Returns the second moment of a merged cell of a gauge or delta; `None` when it is unknown.
    pub(crate) fn second_moment(&self) -> Option<f64> {
        let Self { n, min, max, first, last, m2, .. } = *self;
        Cell { n, min, max, first, last, m2, ..Cell::EMPTY }.second_moment()
    }

    /// Splits a cell of two samples.
    fn split(&self, kind: Kind) -> [Self; 2] {
        let mut first = Self::sample(self.first_at, self.first);
        let mut last = Self::sample(self.last_at, self.last);
        if kind == Kind::Counter {
            // A decrease is a reset, as at ingest.
            let grown = self.last - self.first;
            last.sum = if grown < 0.0 { self.last } else { grown };
            first.sum = (self.sum - last.sum).max(0.0);
            let seconds = (self.last_at - self.first_at) as f64 / 1000.0;
            (last.min, last.max) = (last.sum / seconds, last.sum / seconds);
            // With a single rate, the first reading has no predecessor.
            let is_first = self.min == self.max && first.sum == 0.0;
            let rate = if is_first { f64::NEG_INFINITY } else { self.max };
            (first.min, first.max) = (-rate, rate);
            if !is_first {
                first.min = self.min;
            }
        }
        [first, last]
    }
}

/// Appends slots as timed cells. Cells of two samples are split, because both samples are known.
/// The buffer of the slots may be reused for the result.
pub(crate) fn append_cells(slots: &mut Vec<Slot>, kind: Kind, out: &mut Vec<TimedCell>) {
    // In the common case, no cell is split and the output is empty: the slots are converted in
    // place.
    let is_one_to_one = slots.iter().all(|slot| !matches!(slot.cell.n, 0 | 2));
    let surplus = slots.capacity() - slots.len();
    if is_one_to_one && out.is_empty() && surplus <= slots.len() / SURPLUS_DIVISOR {
        let slots = std::mem::take(slots).into_iter();
        *out = slots.map(|slot| TimedCell::of_slot(slot.start, &slot.cell)).collect();
        return;
    }
    out.reserve(slots.len());
    for slot in slots.iter().filter(|slot| slot.cell.n > 0) {
        let cell = TimedCell::of_slot(slot.start, &slot.cell);
        if cell.n == 2 && cell.first_at < cell.last_at {
            out.extend(cell.split(kind));
        } else {
            out.push(cell);
        }
    }
}

/// Returns the cells of readings at times in seconds, in slots of a minute.
#[cfg(test)]
pub(crate) fn cells_of_readings(
    kind: Kind,
    readings: impl IntoIterator<Item = (i64, f64)>,
) -> Vec<TimedCell> {
    const SLOT_MS: i64 = 60_000;
    let mut state = crate::model::SeriesState::new(kind);
    let mut slots: Vec<Slot> = Vec::new();
    for (at, value) in readings {
        let start = UnixMillis(at * 1000 / SLOT_MS * SLOT_MS);
        let cell = state.observe(UnixMillis(at * 1000), value, 0, start).cell;
        match slots.last_mut().filter(|slot| slot.start == start) {
            Some(slot) => slot.cell.merge(&cell),
            None => slots.push(Slot { start, cell }),
        }
    }
    let mut out = Vec::new();
    append_cells(&mut slots, kind, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_of_two_samples_is_split_exactly() {
        let mut cell = Cell::reading(1000, 5.0, 2.0, Some(1.0));
        cell.merge(&Cell::reading(3000, 9.0, 4.0, Some(2.0)));
        let slot = Slot { start: UnixMillis(60_000), cell };
        let mut out = Vec::new();
        append_cells(&mut vec![slot], Kind::Counter, &mut out);
        let sums: Vec<_> = out.iter().map(|cell| (cell.last_at, cell.sum, cell.last)).collect();
        assert_eq!(sums, [(61_000, 2.0, 5.0), (63_000, 4.0, 9.0)]);
        assert!(out.iter().all(|cell| cell.max.is_finite()));
        // The first reading of a series has no increase.
        let mut cell = Cell::reading(1000, 5.0, 0.0, None);
        cell.merge(&Cell::reading(3000, 9.0, 4.0, Some(2.0)));
        out.clear();
        append_cells(&mut vec![Slot { start: UnixMillis(0), cell }], Kind::Counter, &mut out);
        assert_eq!((out[0].sum, out[0].max), (0.0, f64::NEG_INFINITY));
        assert_eq!((out[1].sum, out[1].max), (4.0, 2.0));
    }

    #[test]
    fn slots_are_converted_to_the_same_cells_in_place_and_by_appending() {
        let slot = |minute: i64, n: u32| {
            let mut cell = Cell::single(500, minute as f64);
            (1..n).for_each(|at| cell.merge(&Cell::single(1000 * at, f64::from(at))));
            Slot { start: UnixMillis(60_000 * minute), cell }
        };
        let mut slots: Vec<_> =
            (0..100).map(|minute| slot(minute, 1 + 2 * (minute as u32 % 3))).collect();
        let others = slots.clone();
        let mut converted = Vec::new();
        append_cells(&mut slots, Kind::Gauge, &mut converted);
        assert!(slots.is_empty(), "the cells reuse the buffer");
        let mut appended = vec![TimedCell::sample(-1, 0.0)];
        append_cells(&mut others.clone(), Kind::Gauge, &mut appended);
        assert_eq!(converted, appended[1..]);
        assert_eq!((converted[7].first_at, converted[7].n, converted[7].first), (420_500, 3, 7.0));
        let mut sparse = Vec::with_capacity(1000);
        sparse.extend_from_slice(&others);
        append_cells(&mut sparse, Kind::Gauge, &mut Vec::new());
        assert_eq!(sparse, others, "a buffer with much unused capacity is not reused");
    }
}
