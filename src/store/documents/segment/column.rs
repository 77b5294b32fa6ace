//! The decoded columns of one series of a tile.
//!
//! Must never know: blocks, where columns are kept.

use std::{ops::Range, sync::Arc};

use super::{
    buffers::Buffers,
    times::{SLOTS_MAX, Times},
    values::{Columns, Values},
};
use crate::model::Cell;

/// The values of a column that is not read.
static NO_VALUES: [f64; SLOTS_MAX] = [0.0; SLOTS_MAX];
/// The number of columns of [`Values`].
const COLUMNS: usize = 6;
/// The names of the columns of [`Values`].
const NAMES: [Columns; COLUMNS] =
    [Columns::SUM, Columns::MIN, Columns::MAX, Columns::ENDS, Columns::ENDS, Columns::MOMENT];

/// The cells of a series that a reader wants.
#[derive(Debug, Clone)]
pub(super) struct Wanted<'a> {
    /// The times of all cells.
    pub(super) times: &'a Times,
    /// The indexes of the wanted cells.
    pub(super) cells: Range<usize>,
    pub(super) columns: Columns,
}

impl<'a> Wanted<'a> {
    /// Selects the cells within a range of slots.
    pub(super) fn within(times: &'a Times, slots: &Range<usize>, columns: Columns) -> Self {
        let position =
            |slot: usize| times.slots.partition_point(|filled| usize::from(*filled) < slot);
        let from = position(slots.start);
        let cells = from..position(slots.end).max(from);
        // Readers split a cell of two samples, which takes all columns of values.
        let has_pairs = times.n[cells.clone()].contains(&2);
        let columns = if has_pairs { columns.and(Columns::VALUES) } else { columns };
        Self { times, cells, columns }
    }

    /// Adds the cells and columns of a decoded column, so that one column has both, unless their
    /// cells have nothing in common.
    pub(super) fn with(&self, column: &SealedColumn) -> Self {
        let (known, wanted) = (column.cells(), &self.cells);
        if known.end <= wanted.start || wanted.end <= known.start {
            return self.clone();
        }
        // A moving window would otherwise lack some cells at every read.
        let start = if wanted.start < known.start { 0 } else { known.start };
        let end = if known.end < wanted.end { self.times.count() } else { known.end };
        Self { times: self.times, cells: start..end, columns: self.columns.and(column.wanted) }
    }

    /// Visits the wanted cells, whose values were decoded.
    pub(super) fn visit_values(&self, values: &Values, visit: impl FnMut(usize, Cell)) {
        let Values { sum, min, max, first, last, m2 } = values;
        let none = &NO_VALUES[..self.cells.len()];
        let columns = [sum, min, max, first, last, m2];
        self.visit(columns.map(|column| column.get(self.cells.clone()).unwrap_or(none)), visit);
    }

    /// Visits the wanted cells. `columns` are the values of these cells.
    pub(super) fn visit(&self, columns: [&[f64]; COLUMNS], mut visit: impl FnMut(usize, Cell)) {
        let (times, cells) = (self.times, self.cells.clone());
        let (n, slots) = (&times.n[cells.clone()], &times.slots[cells.clone()]);
        let (first_at, last_at) = (&times.first_at[cells.clone()], &times.last_at[cells.clone()]);
        // Slices of equal length let the compiler omit bounds checks.
        let [sum, min, max, first, last, m2] = columns.map(|column| &column[..cells.len()]);
        for index in 0..cells.len() {
            let cell = Cell {
                n: n[index],
                first_at: first_at[index],
                last_at: last_at[index],
                sum: sum[index],
                min: min[index],
                max: max[index],
                first: first[index],
                last: last[index],
                m2: m2[index],
            };
            visit(usize::from(slots[index]), cell);
        }
    }
}

/// The decoded columns of some cells of a series. Copies share their values.
#[derive(Debug, Clone)]
pub(crate) struct SealedColumn {
    /// The index of the first cell.
    from: u16,
    count: u16,
    /// The columns that a reader wanted.
    wanted: Columns,
    /// A bit for each column that has values; all others are zero.
    present: u8,
    /// The values, column by column.
    values: Arc<[f64]>,
}

impl SealedColumn {
    /// Copies the wanted columns of decoded values, which may have others too.
    pub(super) fn of(values: &Values, wanted: &Wanted<'_>, buffers: &mut Buffers) -> Self {
        let Wanted { cells, columns, .. } = wanted;
        let (mut present, mut all) = (0, buffers.doubles.take());
        let Values { sum, min, max, first, last, m2 } = values;
        let each = [sum, min, max, first, last, m2].into_iter().zip(NAMES);
        for (index, (column, name)) in each.enumerate() {
            if columns.has_any(name)
                && let Some(column) = column.get(cells.clone())
            {
                present |= 1 << index;
                all.extend_from_slice(column);
            }
        }
        let (from, count) = (cells.start as u16, cells.len() as u16);
        let column = Self { from, count, wanted: *columns, present, values: all[..].into() };
        buffers.doubles.give([all]);
        column
    }

    /// Returns the size of the values in memory, with the two counts of their owners.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.values) + 2 * size_of::<usize>()
    }

    fn cells(&self) -> Range<usize> {
        let from = usize::from(self.from);
        from..from + usize::from(self.count)
    }

    /// Returns whether all wanted cells and columns are decoded.
    pub(super) fn has(&self, wanted: &Wanted<'_>) -> bool {
        let (known, cells) = (self.cells(), &wanted.cells);
        known.start <= cells.start
            && cells.end <= known.end
            && self.wanted.and(wanted.columns) == self.wanted
    }

    /// Returns the columns of some of the decoded cells.
    pub(super) fn columns(&self, cells: &Range<usize>) -> [&[f64]; COLUMNS] {
        let from = cells.start - usize::from(self.from);
        let mut rest = &self.values[..];
        [0, 1, 2, 3, 4, 5].map(|index| {
            if self.present >> index & 1 == 0 {
                return &NO_VALUES[..cells.len()];
            }
            let (column, after) = rest.split_at(usize::from(self.count));
            rest = after;
            &column[from..from + cells.len()]
        })
    }
}
