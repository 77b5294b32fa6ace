//! A layer of the catalog: cells of one granularity, by slot and series.

use std::{collections::BTreeMap, ops::Range};

use crate::model::{Cell, Granularity, SeriesId, UnixMillis};

/// Cells lie in pages of this many neighbouring series, so that the series of one host, which
/// were defined together, share cache lines and pages.
const SERIES_PER_PAGE: usize = 32;

type Page = Box<[Cell; SERIES_PER_PAGE]>;

/// The cells of one slot.
#[derive(Debug, Clone, Default)]
pub(crate) struct SlotCells {
    pages: Vec<Option<Page>>,
}

impl SlotCells {
    /// The cell of a series, made if it is not there; `grown` gets the bytes that this took.
    fn cell_mut(&mut self, series: SeriesId, grown: &mut usize) -> &mut Cell {
        let (page, lane) = split(series);
        if page >= self.pages.len() {
            *grown += (page + 1 - self.pages.len()) * size_of::<Option<Page>>();
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| {
            *grown += size_of::<[Cell; SERIES_PER_PAGE]>();
            Box::new([Cell::EMPTY; SERIES_PER_PAGE])
        });
        &mut page[lane]
    }

    /// The cell of a series, if any sample fell into it.
    pub(crate) fn cell(&self, series: SeriesId) -> Option<&Cell> {
        let (page, lane) = split(series);
        let cell = &self.pages.get(page)?.as_ref()?[lane];
        (!cell.is_empty()).then_some(cell)
    }

    /// Series whose page is there, ascending; their cells may still be empty.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (usize, &[Cell; SERIES_PER_PAGE])> {
        let pages = self.pages.iter().enumerate();
        pages.filter_map(|(index, page)| Some((index, page.as_deref()?)))
    }

    /// Number of rows of `N` neighbouring series, whole pages each.
    pub(crate) fn row_count<const N: usize>(&self) -> usize {
        const { assert!(N.is_multiple_of(SERIES_PER_PAGE)) };
        self.pages.len().div_ceil(N / SERIES_PER_PAGE)
    }

    /// Copies the cells of a row; false when no page of it is there.
    pub(crate) fn copy_row<const N: usize>(&self, row: usize, out: &mut [Cell; N]) -> bool {
        let first = row * (N / SERIES_PER_PAGE);
        let mut found = false;
        for (lanes, page) in out.chunks_mut(SERIES_PER_PAGE).zip(self.pages.iter().skip(first)) {
            if let Some(page) = page {
                lanes.copy_from_slice(&page[..]);
                found = true;
            }
        }
        found
    }
}

fn split(series: SeriesId) -> (usize, usize) {
    let id = series.0 as usize;
    (id / SERIES_PER_PAGE, id % SERIES_PER_PAGE)
}

/// Cells of one granularity.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer {
    /// By slot start in Unix milliseconds.
    slots: BTreeMap<i64, SlotCells>,
    bytes: usize,
}

impl Layer {
    /// Bytes taken in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A cursor that writes many cells of one slot without looking the slot up again.
    pub(crate) fn slot(&mut self, start: i64) -> SlotWriter<'_> {
        SlotWriter { cells: self.slots.entry(start).or_default(), bytes: &mut self.bytes }
    }

    /// The slots that begin within the range, ascending.
    pub(crate) fn slots(&self, range: Range<i64>) -> impl Iterator<Item = (i64, &SlotCells)> {
        self.slots.range(range).map(|(start, cells)| (*start, cells))
    }

    /// All slots, ascending.
    pub(crate) fn all_slots(&self) -> impl Iterator<Item = (i64, &SlotCells)> {
        self.slots.iter().map(|(start, cells)| (*start, cells))
    }

    /// Merges the cells of a finer, or the same, granularity into this layer's slots.
    pub(crate) fn absorb(&mut self, finer: &Self, granularity: &Granularity) {
        for (start, cells) in finer.all_slots() {
            let own_start = granularity.slot_start(UnixMillis(start)).0;
            let shift = (start - own_start) as u32;
            let mut slot = self.slot(own_start);
            for (page, page_cells) in cells.pages() {
                for (lane, cell) in page_cells.iter().enumerate().filter(|(_, c)| !c.is_empty()) {
                    let series = SeriesId((page * SERIES_PER_PAGE + lane) as u32);
                    slot.merge(series, &cell.shifted(shift));
                }
            }
        }
    }
}

/// See [`Layer::slot`].
pub(crate) struct SlotWriter<'a> {
    cells: &'a mut SlotCells,
    bytes: &'a mut usize,
}

impl SlotWriter<'_> {
    /// Merges a cell into that of a series.
    pub(crate) fn merge(&mut self, series: SeriesId, cell: &Cell) {
        self.cells.cell_mut(series, self.bytes).merge(cell);
    }
}
