//! The numbers and texts of a packed body.

use crate::DecodeError;

/// The maximum size of a number.
const NUMBER_BYTES_MAX: usize = 10;

/// Appends a number with seven bits per byte, lowest first.
pub(super) fn push_unsigned(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed number in zigzag encoding, in which small numbers take few bytes.
pub(super) fn push_signed(number: i64, out: &mut Vec<u8>) {
    push_unsigned(((number << 1) ^ (number >> 63)) as u64, out);
}

pub(super) fn push_text(text: &str, out: &mut Vec<u8>) {
    push_unsigned(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// A reader of a body.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        Self { rest: body, length: body.len() }
    }

    /// Returns the number of remaining bytes.
    pub(super) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn fault(&self, problem: &str) -> DecodeError {
        DecodeError::new(format!("packed body at byte {}", self.length - self.rest.len()), problem)
    }

    pub(super) fn read_bytes(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or_else(|| self.fault("the body ends too early"))?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn byte(&mut self) -> Result<u8, DecodeError> {
        self.read_bytes(1).map(|bytes| bytes.first().copied().unwrap_or_default())
    }

    pub(super) fn eight_bytes(&mut self) -> Result<[u8; 8], DecodeError> {
        self.read_bytes(8)?.try_into().map_err(|_| self.fault("the body ends too early"))
    }

    pub(super) fn unsigned(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0_u64;
        for index in 0..NUMBER_BYTES_MAX {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // Only the lowest bit of the last byte is valid.
            if index == NUMBER_BYTES_MAX - 1 && bits > 1 {
                break;
            }
            number |= bits << (7 * index);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.fault("a number has more than 64 bits"))
    }

    pub(super) fn signed(&mut self) -> Result<i64, DecodeError> {
        let number = self.unsigned()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads a count of items that take at least one byte each.
    pub(super) fn count(&mut self, max: usize) -> Result<usize, DecodeError> {
        let count = usize::try_from(self.unsigned()?).unwrap_or(usize::MAX);
        if count > max {
            return Err(self.fault(&format!("{count} items; at most {max} are allowed")));
        }
        if count > self.remaining() {
            return Err(
                self.fault(&format!("{count} items, but {} bytes are left", self.remaining()))
            );
        }
        Ok(count)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, DecodeError> {
        let length = self.count(usize::MAX)?;
        let bytes = self.read_bytes(length)?;
        std::str::from_utf8(bytes).map_err(|_| self.fault("a text is not UTF-8"))
    }
}
