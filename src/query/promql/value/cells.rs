//! Cells with the times of their readings: what is known of a series' samples.
//!
//! Must never know: the store, the tree.

use crate::{
    model::{Cell, Kind, UnixMillis},
    store::Slot,
};

/// Room of slots is kept if no more than this part of it is not needed.
const SURPLUS_PART: usize = 8;

/// A cell with the times of its readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimedCell {
    /// Time of the first reading, Unix milliseconds.
    pub(crate) first_at: i64,
    /// Time of the last reading.
    pub(crate) last_at: i64,
    /// Samples.
    pub(crate) n: u32,
    /// As in [`Cell`].
    pub(crate) sum: f64,
    /// As in [`Cell`].
    pub(crate) min: f64,
    /// As in [`Cell`].
    pub(crate) max: f64,
    /// As in [`Cell`].
    pub(crate) first: f64,
    /// As in [`Cell`].
    pub(crate) last: f64,
}

impl TimedCell {
    /// A sample as such.
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
        }
    }

    /// Whether samples were merged such that not all of them are known.
    pub(crate) fn is_merged(&self) -> bool {
        self.n > 2
    }

    /// The two samples of a cell of two.
    fn split(&self, kind: Kind) -> [Self; 2] {
        let mut first = Self::sample(self.first_at, self.first);
        let mut last = Self::sample(self.last_at, self.last);
        if kind == Kind::Counter {
            // A decrease is a reset, as when the readings came.
            let grown = self.last - self.first;
            last.sum = if grown < 0.0 { self.last } else { grown };
            first.sum = (self.sum - last.sum).max(0.0);
            let seconds = (self.last_at - self.first_at) as f64 / 1000.0;
            (last.min, last.max) = (last.sum / seconds, last.sum / seconds);
            // With one rate the first reading had no neighbour before it.
            let alone = self.min == self.max && first.sum == 0.0;
            let rate = if alone { f64::NEG_INFINITY } else { self.max };
            (first.min, first.max) = (-rate, rate);
            if !alone {
                first.min = self.min;
            }
        }
        [first, last]
    }
}

/// Appends slots as timed cells, and may keep their room for that. A cell of two samples is two
/// cells: both are known.
pub(crate) fn append_cells(slots: &mut Vec<Slot>, kind: Kind, out: &mut Vec<TimedCell>) {
    // Most often no cell is split, and nothing is there yet: then they become timed cells where they are.
    let is_each_one = slots.iter().all(|slot| !matches!(slot.cell.n, 0 | 2));
    let surplus = slots.capacity() - slots.len();
    if is_each_one && out.is_empty() && surplus <= slots.len() / SURPLUS_PART {
        let own = std::mem::take(slots).into_iter();
        *out = own.map(|slot| TimedCell::of_slot(slot.start, &slot.cell)).collect();
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
        // The first reading of all has no increase.
        let mut cell = Cell::reading(1000, 5.0, 0.0, None);
        cell.merge(&Cell::reading(3000, 9.0, 4.0, Some(2.0)));
        out.clear();
        append_cells(&mut vec![Slot { start: UnixMillis(0), cell }], Kind::Counter, &mut out);
        assert_eq!((out[0].sum, out[0].max), (0.0, f64::NEG_INFINITY));
        assert_eq!((out[1].sum, out[1].max), (4.0, 2.0));
    }

    #[test]
    fn slots_become_the_same_cells_where_they_are_and_behind_others() {
        let slot = |minute: i64, n: u32| {
            let mut cell = Cell::single(500, minute as f64);
            (1..n).for_each(|at| cell.merge(&Cell::single(1000 * at, f64::from(at))));
            Slot { start: UnixMillis(60_000 * minute), cell }
        };
        let mut slots: Vec<_> =
            (0..100).map(|minute| slot(minute, 1 + 2 * (minute as u32 % 3))).collect();
        let others = slots.clone();
        let mut own = Vec::new();
        append_cells(&mut slots, Kind::Gauge, &mut own);
        assert!(slots.is_empty(), "their room is the cells'");
        let mut behind = vec![TimedCell::sample(-1, 0.0)];
        append_cells(&mut others.clone(), Kind::Gauge, &mut behind);
        assert_eq!(own, behind[1..]);
        assert_eq!((own[7].first_at, own[7].n, own[7].first), (420_500, 3, 7.0));
        let mut sparse = Vec::with_capacity(1000);
        sparse.extend_from_slice(&others);
        append_cells(&mut sparse, Kind::Gauge, &mut Vec::new());
        assert_eq!(sparse, others, "much room is not kept");
    }
}
