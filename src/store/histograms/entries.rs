//! Rows of cells of histograms, each with a number: the lane of a series, or the index of a slot.
//!
//! FORMAT.md describes the bytes. Must never know: the table of the rows.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::cell_bytes::{put_cell, take_cell};
use crate::{
    model::HistogramCell,
    store::encoding::varint::{put_varint, take_varint},
};

/// The cells of a row by their numbers.
pub(crate) type Entries = BTreeMap<u32, HistogramCell>;

/// Returns the bytes of a row with its key; `None` when it has no cells.
pub(crate) fn encode(entries: &Entries, key: u64) -> Option<Vec<u8>> {
    (!entries.is_empty()).then(|| encode_any(entries, key))
}

/// Returns the bytes of a row with its key, even without cells.
pub(crate) fn encode_any(entries: &Entries, key: u64) -> Vec<u8> {
    let (mut out, mut bytes) = (Vec::new(), Vec::new());
    for (number, cell) in entries {
        bytes.clear();
        put_cell(cell, &mut bytes);
        put_varint(u64::from(*number), &mut out);
        put_varint(bytes.len() as u64, &mut out);
        out.extend_from_slice(&bytes);
    }
    let check = xxh3_64_with_seed(&out, key);
    out.extend_from_slice(&check.to_le_bytes());
    out
}

/// Reads the wanted cells of a row; `None` when the row is damaged.
pub(crate) fn decode(bytes: &[u8], key: u64, is_wanted: impl Fn(u32) -> bool) -> Option<Entries> {
    let (mut rest, check) = bytes.split_last_chunk()?;
    if xxh3_64_with_seed(rest, key) != u64::from_le_bytes(*check) {
        return None;
    }
    let mut entries = Entries::new();
    while !rest.is_empty() {
        let number = u32::try_from(take_varint(&mut rest)?).ok()?;
        let length = usize::try_from(take_varint(&mut rest)?).ok()?;
        let (mut cell, tail) = rest.split_at_checked(length)?;
        if is_wanted(number) {
            let read = take_cell(&mut cell).filter(|_| cell.is_empty())?;
            entries.insert(number, read);
        }
        rest = tail;
    }
    Some(entries)
}

/// Adds a cell to the cells of a row.
pub(crate) fn merge(entries: &mut Entries, number: u32, cell: &HistogramCell) {
    match entries.get_mut(&number) {
        Some(known) => known.merge(cell),
        None => drop(entries.insert(number, cell.clone())),
    }
}
