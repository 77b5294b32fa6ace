//! The histograms of one series over one span: the block of a tile of histograms.
//!
//! A block consists of `chunk`s of consecutive cells. The histograms of a chunk share their `forms`
//! and the indexes of their buckets; the counts of each bucket are a `column`. Must never know:
//! where the bytes are stored, checksums.

mod chunk;
mod column;
mod forms;
#[cfg(test)]
mod tests;
pub(crate) mod tile;

use std::ops::{ControlFlow, Range};

use super::{
    bits::PADDING,
    buffers::Buffers,
    cursor::{Cursor, Misfit, put_varint},
    times::Times,
};
use crate::model::HistogramCell;

/// The maximum number of slots of a span of histograms.
pub(crate) const HISTOGRAM_SLOTS_MAX: usize = 256;
/// The maximum number of cells of a chunk times its columns. A cell of three histograms with all
/// possible buckets has about 15,000 columns.
const NUMBERS_MAX: usize = 1 << 17;

/// A function that takes the cell of a slot, and breaks when no more cells are wanted.
pub(crate) type CellVisitor<'a> = dyn FnMut(usize, HistogramCell) -> ControlFlow<()> + 'a;

/// Appends the cells of a series, ascending by slot. None of them is empty.
fn put(cells: &[(u16, HistogramCell)], out: &mut Vec<u8>) {
    let (mut rest, mut bytes) = (cells, Vec::new());
    while !rest.is_empty() {
        bytes.clear();
        let count = chunk::put(rest, &mut bytes);
        put_varint(count as u64, out);
        put_varint(bytes.len() as u64, out);
        out.extend_from_slice(&bytes);
        rest = &rest[count..];
    }
}

/// Visits the cells in a range of slots until the visitor breaks. `bytes` ends with [`PADDING`].
/// The cells before a damaged chunk are visited.
pub(super) fn read(
    bytes: &[u8],
    times: &Times,
    slots: &Range<usize>,
    buffers: &mut Buffers,
    visit: &mut CellVisitor<'_>,
) -> Result<ControlFlow<()>, Misfit> {
    let end = bytes.len().checked_sub(PADDING).ok_or(Misfit(0))?;
    let (mut from, mut done) = (Cursor::new(bytes, end)?, 0);
    while done < times.count() {
        let count = usize::try_from(from.varint()?).map_err(|_| from.misfit())?;
        if !(1..=HISTOGRAM_SLOTS_MAX).contains(&count) || count > times.count() - done {
            return Err(from.misfit());
        }
        let length = usize::try_from(from.varint()?).map_err(|_| from.misfit())?;
        let (at, chunk) = (from.at(), from.take(length)?);
        let part = done..done + count;
        done += count;
        let is_wanted = |slot: u16| slots.contains(&usize::from(slot));
        if !times.slots[part.clone()].iter().any(|slot| is_wanted(*slot)) {
            continue;
        }
        let chunk = Cursor::new(chunk, length)?;
        let cells = chunk::read(chunk, (times, part), is_wanted, buffers);
        for (slot, cell) in cells.map_err(|Misfit(inside)| Misfit(at + inside))? {
            if visit(usize::from(slot), cell).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
    if from.at() == end { Ok(ControlFlow::Continue(())) } else { Err(from.misfit()) }
}
