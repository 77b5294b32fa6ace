//! The bytes of a cell of histograms.
//!
//! FORMAT.md describes them. Must never know: where they are stored.

use crate::{
    model::{Histogram, HistogramCell},
    store::encoding::varint::{put_varint, take_varint},
};

/// The first histogram equals the last one, and is omitted.
const FIRST_IS_LAST: u8 = 1;
/// The total equals the last histogram, and is omitted.
const TOTAL_IS_LAST: u8 = 2;

/// Appends a cell.
pub(crate) fn put_cell(cell: &HistogramCell, out: &mut Vec<u8>) {
    put_varint(u64::from(cell.n), out);
    if cell.n == 0 {
        cell.total.encode(out);
        return;
    }
    put_varint(u64::from(cell.first_at), out);
    put_varint(u64::from(cell.last_at.wrapping_sub(cell.first_at)), out);
    let (first_is_last, total_is_last) = (cell.first == cell.last, cell.total == cell.last);
    out.push(u8::from(first_is_last) * FIRST_IS_LAST + u8::from(total_is_last) * TOTAL_IS_LAST);
    cell.last.encode(out);
    if !first_is_last {
        cell.first.encode(out);
    }
    if !total_is_last {
        cell.total.encode(out);
    }
}

/// Removes a cell from the front of the bytes; `None` when it is damaged.
pub(crate) fn take_cell(bytes: &mut &[u8]) -> Option<HistogramCell> {
    let number = |bytes: &mut &[u8]| u32::try_from(take_varint(bytes)?).ok();
    let n = number(bytes)?;
    if n == 0 {
        return Some(HistogramCell::correction(Histogram::decode(bytes).ok()?));
    }
    let first_at = number(bytes)?;
    let last_at = first_at.wrapping_add(number(bytes)?);
    let (flags, rest) = bytes.split_first()?;
    *bytes = rest;
    let last = Histogram::decode(bytes).ok()?;
    let mut other = |flag: u8| {
        if flags & flag == 0 { Histogram::decode(bytes).ok() } else { Some(last.clone()) }
    };
    let (first, total) = (other(FIRST_IS_LAST)?, other(TOTAL_IS_LAST)?);
    Some(HistogramCell { n, first_at, last_at, total, first, last })
}
