//! The second moments at the end of a row: of each cell that stores one, as few bytes.
//!
//! Rows whose cells store no moment have no such part. FORMAT.md describes the bytes. Must never
//! know: the values of cells.

use crate::store::encoding::{moment, number::Scale};

/// The first byte of a moment that is stored as a double.
const BARE: u8 = 15;
const WORD_BYTES: usize = 8;

/// The second moments of a row that is being written.
#[derive(Debug, Default)]
pub(super) struct MomentsWriter {
    /// The bit i is set when the cell of series i has a moment.
    lanes: u64,
    bytes: Vec<u8>,
}

impl MomentsWriter {
    pub(super) fn clear(&mut self) {
        self.lanes = 0;
        self.bytes.clear();
    }

    /// Adds the moment of a cell, unless it is 0. Lanes ascend.
    pub(super) fn add(&mut self, lane: usize, m2: f64, n: u32, scale: Scale) {
        if m2 == 0.0 {
            return;
        }
        self.lanes |= 1 << lane;
        if let Some(number) = moment::number(m2, n, scale) {
            let length = WORD_BYTES - number.leading_zeros() as usize / 8;
            self.bytes.push(length as u8);
            self.bytes.extend_from_slice(&number.to_le_bytes()[..length]);
        } else {
            self.bytes.push(BARE);
            self.bytes.extend_from_slice(&m2.to_le_bytes());
        }
    }

    /// Appends the moments, and the word of the cells that have one.
    pub(super) fn finish(&self, row: &mut Vec<u8>) {
        if self.lanes != 0 {
            row.extend_from_slice(&self.bytes);
            row.extend_from_slice(&self.lanes.to_le_bytes());
        }
    }
}

/// The second moments of a row, read in ascending order of lanes.
pub(super) struct Moments<'a> {
    /// The cells whose moments are not read yet.
    lanes: u64,
    rest: &'a [u8],
}

impl<'a> Moments<'a> {
    /// Reads the bytes after the values of a row.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        match bytes.split_last_chunk::<WORD_BYTES>() {
            Some((rest, lanes)) => Self { lanes: u64::from_le_bytes(*lanes), rest },
            None => Self { lanes: 0, rest: &[] },
        }
    }

    /// Returns the moment of a cell, 0 when it has none; `None` when bytes are missing.
    pub(super) fn of(&mut self, lane: u32, n: u32, scale: Scale) -> Option<f64> {
        if self.lanes >> lane & 1 == 0 {
            return Some(0.0);
        }
        while self.lanes.trailing_zeros() < lane {
            self.take()?;
        }
        let (kind, number) = self.take()?;
        Some(match kind {
            BARE => f64::from_bits(number).max(0.0),
            _ => moment::moment(number as i64, n, scale),
        })
    }

    /// Removes the next moment: its first byte and its number.
    fn take(&mut self) -> Option<(u8, u64)> {
        self.lanes &= self.lanes - 1;
        let (kind, rest) = self.rest.split_first()?;
        let length = if *kind == BARE { WORD_BYTES } else { usize::from(*kind) };
        let (bytes, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        let mut number = [0; WORD_BYTES];
        number.get_mut(..length)?.copy_from_slice(bytes);
        Some((*kind, u64::from_le_bytes(number)))
    }
}
