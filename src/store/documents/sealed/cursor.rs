//! Reading bytes one after the other, never beyond their end.
//!
//! Must never know: what they mean.

use super::bits::PADDING;

/// The bytes are not what a writer wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("at byte {0} it is not as it can have been written")]
pub(crate) struct Misfit(pub(crate) usize);

/// Bytes that are padded, and how far they were read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    /// What is to be read, and [`PADDING`] more.
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// At the first of `length` bytes; `bytes` has [`PADDING`] more.
    pub(super) fn new(bytes: &'a [u8], length: usize) -> Result<Self, Misfit> {
        if bytes.len() < length.saturating_add(PADDING) {
            return Err(Misfit(bytes.len()));
        }
        Ok(Self { bytes, at: 0, end: length })
    }

    /// How far was read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// That it cannot go on from here.
    pub(super) fn misfit(&self) -> Misfit {
        Misfit(self.at)
    }

    /// The next bytes, and whatever lies behind them.
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Misfit> {
        let bytes = self.bytes;
        let from = self.at;
        if count > self.end - from {
            return Err(self.misfit());
        }
        self.at += count;
        Ok(&bytes[from..])
    }

    pub(super) fn byte(&mut self) -> Result<u8, Misfit> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn word(&mut self) -> Result<u64, Misfit> {
        let mut word = [0; 8];
        word.copy_from_slice(&self.take(8)?[..8]);
        Ok(u64::from_le_bytes(word))
    }

    /// Seven bits a byte, the lowest first; all but the last byte have the highest bit set.
    pub(super) fn varint(&mut self) -> Result<u64, Misfit> {
        let mut value = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.misfit())
    }

    pub(super) fn zigzag(&mut self) -> Result<i64, Misfit> {
        self.varint().map(unzigzag)
    }
}

pub(super) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn put_zigzag(value: i64, out: &mut Vec<u8>) {
    put_varint(zigzag(value), out);
}

/// 0, -1, 1, -2 .. as 0, 1, 2, 3 ..
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
