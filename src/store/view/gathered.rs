//! Cells of some series, gathered slot by slot, as they lie in memory and in the head, and read
//! series by series.
//!
//! Must never know: where the cells were.

use crate::{
    model::{Cell, SeriesId, UnixMillis},
    store::{documents::Slot, encoding::lanes::row_of},
};

/// Cells on their way: by the place of their series among those that are gathered, a slot perhaps
/// in several parts.
#[derive(Debug, Default)]
pub(super) struct Gathered(Vec<(u32, Slot)>);

/// The most cells that room is made for before any is there.
const ROOM_MAX: usize = 1 << 14;

impl Gathered {
    /// Makes room for more cells, or for many of them.
    pub(super) fn reserve(&mut self, cells: usize) {
        self.0.reserve(cells.min(ROOM_MAX));
    }

    /// Adds a cell.
    pub(super) fn push(&mut self, place: usize, start: i64, cell: Cell) {
        self.0.push((place as u32, Slot { start: UnixMillis(start), cell }));
    }

    /// Drops the cells of slots that are not wanted.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(i64) -> bool) {
        self.0.retain(|(_, slot)| is_wanted(slot.start.0));
    }

    /// Sorts the cells by series, of a number of series.
    pub(super) fn by_series(self, count: usize) -> BySeries {
        let mut ends = vec![0; if self.0.is_empty() { 0 } else { count }];
        self.0.iter().for_each(|(place, _)| ends[*place as usize] += 1);
        let mut end = 0;
        for own in &mut ends {
            // Where its next cell goes, for now.
            (*own, end) = (end, end + *own);
        }
        let mut slots = vec![Slot { start: UnixMillis(0), cell: Cell::EMPTY }; self.0.len()];
        for (place, slot) in self.0 {
            let next = &mut ends[place as usize];
            slots[*next] = slot;
            *next += 1;
        }
        BySeries { ends, slots }
    }
}

/// Gathered cells by series, each in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct BySeries {
    /// The ends of the cells of each series, where those of the next begin.
    ends: Vec<usize>,
    slots: Vec<Slot>,
}

impl BySeries {
    /// The cells of one series.
    pub(super) fn of(&self, place: usize) -> &[Slot] {
        let Some(end) = self.ends.get(place) else { return &[] };
        let from = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.slots[from..*end]
    }
}

/// The places of series that share a row: runs of neighbours among series that ascend.
pub(super) fn rows(series: &[SeriesId]) -> impl Iterator<Item = (u32, &[SeriesId], usize)> {
    let mut from = 0;
    series.chunk_by(|one, next| row_of(*one) == row_of(*next)).map(move |chunk| {
        let first = from;
        from += chunk.len();
        (row_of(chunk[0]), chunk, first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_by_series_in_their_order() {
        let mut gathered = Gathered::default();
        for start in 0..3 {
            for place in [2, 0] {
                gathered.push(place, start, Cell::single(0, start as f64));
            }
        }
        gathered.retain(|start| start != 1);
        let cells = gathered.by_series(4);
        let starts = |place| cells.of(place).iter().map(|slot| slot.start.0).collect::<Vec<_>>();
        assert_eq!([0, 1, 2, 3].map(starts), [vec![0, 2], vec![], vec![0, 2], vec![]]);
        assert!(Gathered::default().by_series(9).of(8).is_empty());
    }

    #[test]
    fn neighbours_share_a_row() {
        let series = [3, 63, 64, 200].map(SeriesId);
        let found: Vec<_> = rows(&series).map(|(row, own, from)| (row, own.len(), from)).collect();
        assert_eq!(found, [(0, 2, 0), (1, 1, 2), (3, 1, 3)]);
    }
}
