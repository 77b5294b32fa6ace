//! Cells of several series, collected from memory and the head slot by slot, and then sorted by
//! series.
//!
//! Must never know: where the cells were stored.

use crate::{
    model::{Cell, SeriesId, UnixMillis},
    store::{documents::Slot, encoding::lanes::row_of},
};

/// Gathered cells, each with the index of its series; a slot may have several cells.
#[derive(Debug, Default)]
pub(super) struct Gathered(Vec<(u32, Slot)>);

/// The maximum number of cells for which memory is reserved in advance.
const ROOM_MAX: usize = 1 << 14;

impl Gathered {
    /// Reserves memory for more cells, up to a limit.
    pub(super) fn reserve(&mut self, cells: usize) {
        self.0.reserve(cells.min(ROOM_MAX));
    }

    /// Adds a cell.
    pub(super) fn push(&mut self, position: usize, start: i64, cell: Cell) {
        self.0.push((position as u32, Slot { start: UnixMillis(start), cell }));
    }

    /// Drops the cells of slots that are not wanted.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(i64) -> bool) {
        self.0.retain(|(_, slot)| is_wanted(slot.start.0));
    }

    /// Sorts the cells by series; `count` is the number of series.
    pub(super) fn by_series(self, count: usize) -> BySeries {
        let mut ends = vec![0; if self.0.is_empty() { 0 } else { count }];
        self.0.iter().for_each(|(position, _)| ends[*position as usize] += 1);
        let mut end = 0;
        for count_or_start in &mut ends {
            // Until all cells of a series are placed, its entry is the index of its next cell.
            (*count_or_start, end) = (end, end + *count_or_start);
        }
        let mut slots = vec![Slot { start: UnixMillis(0), cell: Cell::EMPTY }; self.0.len()];
        for (position, slot) in self.0 {
            let next = &mut ends[position as usize];
            slots[*next] = slot;
            *next += 1;
        }
        BySeries { ends, slots }
    }
}

/// Gathered cells by series; the cells of a series are in the order in which they were gathered.
#[derive(Debug, Default)]
pub(super) struct BySeries {
    /// The end of each series' cells, where the cells of the next series begin.
    ends: Vec<usize>,
    slots: Vec<Slot>,
}

impl BySeries {
    /// Returns the cells of one series.
    pub(super) fn of(&self, position: usize) -> &[Slot] {
        let Some(end) = self.ends.get(position) else { return &[] };
        let from = position.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.slots[from..*end]
    }
}

/// Iterates over the rows of ascending series: the row, its series, and the index of the first.
pub(super) fn rows(series: &[SeriesId]) -> impl Iterator<Item = (u32, &[SeriesId], usize)> {
    let mut from = 0;
    series.chunk_by(|id, next| row_of(*id) == row_of(*next)).map(move |chunk| {
        let first = from;
        from += chunk.len();
        (row_of(chunk[0]), chunk, first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_sorted_by_series_in_the_order_of_gathering() {
        let mut gathered = Gathered::default();
        for start in 0..3 {
            for position in [2, 0] {
                gathered.push(position, start, Cell::single(0, start as f64));
            }
        }
        gathered.retain(|start| start != 1);
        let cells = gathered.by_series(4);
        let starts =
            |position| cells.of(position).iter().map(|slot| slot.start.0).collect::<Vec<_>>();
        assert_eq!([0, 1, 2, 3].map(starts), [vec![0, 2], vec![], vec![0, 2], vec![]]);
        assert!(Gathered::default().by_series(9).of(8).is_empty());
    }

    #[test]
    fn neighbours_share_a_row() {
        let series = [3, 63, 64, 200].map(SeriesId);
        let found: Vec<_> = rows(&series).map(|(row, ids, from)| (row, ids.len(), from)).collect();
        assert_eq!(found, [(0, 2, 0), (1, 1, 2), (3, 1, 3)]);
    }
}
