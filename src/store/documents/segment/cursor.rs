//! A cursor that reads bytes in order, and never beyond their end.
//!
//! Must never know: what the bytes mean.

use super::bits::PADDING;
use crate::store::encoding::varint::take_varint;
pub(super) use crate::store::encoding::varint::{put_varint, unzigzag, zigzag};

/// An error for bytes that no writer produces, with the offset of the first invalid byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes at offset {0} are not valid")]
pub(crate) struct Misfit(pub(crate) usize);

/// Padded bytes, with the position of the next byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    /// The bytes to read, followed by [`PADDING`] bytes.
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the first of `length` bytes, which [`PADDING`] bytes must follow.
    pub(super) fn new(bytes: &'a [u8], length: usize) -> Result<Self, Misfit> {
        if bytes.len() < length.saturating_add(PADDING) {
            return Err(Misfit(bytes.len()));
        }
        Ok(Self { bytes, at: 0, end: length })
    }

    /// Returns the number of bytes read so far.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Returns whether all bytes were read.
    pub(super) fn is_done(&self) -> bool {
        self.at == self.end
    }

    /// Returns the error for bytes that cannot be decoded from this position on.
    pub(super) fn misfit(&self) -> Misfit {
        Misfit(self.at)
    }

    /// Reads `count` bytes. Returns them together with all bytes that follow.
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

    pub(super) fn varint(&mut self) -> Result<u64, Misfit> {
        let mut rest = &self.bytes[self.at..self.end];
        let before = rest.len();
        let number = take_varint(&mut rest).ok_or(self.misfit())?;
        self.at += before - rest.len();
        Ok(number)
    }

    pub(super) fn zigzag(&mut self) -> Result<i64, Misfit> {
        self.varint().map(unzigzag)
    }
}

pub(super) fn put_zigzag(value: i64, out: &mut Vec<u8>) {
    put_varint(zigzag(value), out);
}
