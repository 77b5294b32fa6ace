//! The values of one series over one span: sum, min, max, first and last of each slot. The encoding
//! uses their dependencies.
//!
//! Must never know: where the bytes are stored, and the slots of the values.

mod block;
mod counter;
mod gauge;
mod known;
mod rates;

use std::ops::Range;

use super::{
    bits::PADDING,
    buffers::Buffers,
    cursor::{Cursor, Misfit},
    times::Times,
};
use crate::{model::Cell, store::encoding::number::Scale};
pub use block::Columns;
pub(crate) use block::Values;
use block::{COUNTER, Head, Reader};

/// The bits of a block's first byte that contain the power of its scale.
const POWER: u8 = 7;

/// Replaces `values` with the values of cells; returns true when these are of a counter. Blocks of
/// counters have no second moments, which cells that look like those of a gauge may have.
pub(super) fn fill(values: &mut Values, cells: &mut [Cell]) -> bool {
    let is_counter = is_counter(cells);
    if is_counter {
        for cell in &mut *cells {
            cell.m2 = 0.0;
        }
    }
    values.fill(cells);
    is_counter
}

/// Appends values. Most of their cells have samples.
pub(super) fn write(
    is_counter: bool,
    values: &Values,
    times: &Times,
    width_ms: i64,
    buffers: &mut Buffers,
    out: &mut Vec<u8>,
) {
    if is_counter {
        counter::write(values, times, width_ms, buffers, out);
    } else {
        gauge::write(values, times, buffers, out);
    }
}

/// Returns true when the values are readings of a counter, with increases and rates.
fn is_counter(cells: &[Cell]) -> bool {
    // In a cell of a gauge, the first value is between the smallest and the largest.
    let is_level = |cell: &&Cell| {
        cell.min <= cell.first && cell.first <= cell.max || cell.sum.is_nan() || cell.first.is_nan()
    };
    cells.iter().filter(is_level).count() * 2 < cells.len()
}

/// Reads the wanted columns up to the end of a range of slots; `bytes` ends with [`PADDING`].
/// Values before the range can be anything.
pub(super) fn read(
    bytes: &[u8],
    times: &Times,
    width_ms: i64,
    slots: Range<usize>,
    wanted: Columns,
    buffers: &mut Buffers,
) -> Result<Values, Misfit> {
    let mut from = Cursor::new(bytes, bytes.len().saturating_sub(PADDING))?;
    let (flags, shift, mask) = (from.byte()?, from.byte()?, from.byte()?);
    let scale = Scale::from_bytes(flags & POWER, shift).ok_or_else(|| from.misfit())?;
    let head = Head { scale, flags: flags & 0xf0, base: from.zigzag()? };
    if wanted == Columns::NONE {
        return Ok(Values::default());
    }
    let limit = slots.end.min(times.count());
    let first_slot = slots.start.min(limit);
    let mut reader = Reader::new(from, mask, buffers, limit);
    let values = if flags & COUNTER == 0 {
        gauge::read(head, &mut reader, times, wanted)?
    } else {
        counter::read(head, &mut reader, (times, width_ms), first_slot, wanted)?
    };
    Ok(values)
}
