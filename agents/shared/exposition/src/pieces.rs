//! The pieces of a response: lines or messages, split while the response arrives. Only one piece is
//! in memory.
//!
//! Must never know: the content of lines and messages.

use std::{io::Read, ops::Range};

/// The size by which the buffer first grows.
const CHUNK_BYTES: usize = 16 << 10;

/// Requests more bytes of memory; an error ends the parsing.
pub type MemoryRequest<'a> = dyn FnMut(usize) -> Result<(), String> + 'a;

/// A response that is still arriving.
pub(crate) struct Pieces<'a> {
    source: &'a mut dyn Read,
    reserve_memory: &'a mut MemoryRequest<'a>,
    buffer: Vec<u8>,
    /// Received bytes, from the current piece on.
    rest: Range<usize>,
    /// The number of consumed bytes.
    consumed: u64,
    has_ended: bool,
}

impl<'a> Pieces<'a> {
    pub(crate) fn of(source: &'a mut dyn Read, reserve_memory: &'a mut MemoryRequest<'a>) -> Self {
        Self {
            source,
            reserve_memory,
            buffer: Vec::new(),
            rest: 0..0,
            consumed: 0,
            has_ended: false,
        }
    }

    /// Returns the position of the next piece in the response.
    pub(crate) fn position(&self) -> u64 {
        self.consumed
    }

    /// Requests memory that the caller uses for anything but pieces.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), String> {
        (self.reserve_memory)(bytes)
    }

    /// Returns the next line without its line end, with a size limit, or `None` at the end.
    pub(crate) fn line(&mut self, bytes_max: usize) -> Result<Option<&[u8]>, String> {
        let mut searched = 0;
        loop {
            let rest = self.buffer.get(self.rest.clone()).unwrap_or_default();
            let unsearched = rest.get(searched..).unwrap_or_default();
            let line_end = unsearched.iter().position(|byte| *byte == b'\n');
            let length = line_end.map_or(rest.len(), |index| searched + index);
            if length > bytes_max {
                return Err(format!("a line of more than {bytes_max} bytes"));
            }
            if line_end.is_some() || (self.has_ended && length > 0) {
                let line_end_bytes = usize::from(line_end.is_some());
                return Ok(Some(self.consume(length, line_end_bytes)));
            }
            if self.has_ended {
                return Ok(None);
            }
            searched = length;
            self.read_more()?;
        }
    }

    /// Returns the next length-prefixed message, or `None` at the end.
    pub(crate) fn message(&mut self) -> Result<Option<&[u8]>, String> {
        let mut length = 0_u64;
        for digit in 0..10 {
            if !self.has_bytes(1)? {
                return if digit == 0 { Ok(None) } else { Err(TRUNCATED.to_owned()) };
            }
            let byte = self.consume(1, 0).first().copied().unwrap_or_default();
            length |= u64::from(byte & 0x7f) << (7 * digit);
            if byte < 0x80 {
                let length = usize::try_from(length).map_err(|_| TRUNCATED.to_owned())?;
                let is_complete = self.has_bytes(length)?;
                return if is_complete {
                    Ok(Some(self.consume(length, 0)))
                } else {
                    Err(TRUNCATED.into())
                };
            }
        }
        Err("a number of more than ten bytes".to_owned())
    }

    /// Returns true when the response has this many more bytes. Memory is only requested for bytes
    /// that arrive, because a length prefix may be wrong.
    fn has_bytes(&mut self, bytes: usize) -> Result<bool, String> {
        while self.rest.len() < bytes && !self.has_ended {
            self.read_more()?;
        }
        Ok(self.rest.len() >= bytes)
    }

    fn consume(&mut self, length: usize, line_end_bytes: usize) -> &[u8] {
        let start = self.rest.start;
        self.rest.start += length + line_end_bytes;
        self.consumed += (length + line_end_bytes) as u64;
        self.buffer.get(start..start + length).unwrap_or_default()
    }

    fn read_more(&mut self) -> Result<(), String> {
        if self.rest.start > 0 {
            self.buffer.copy_within(self.rest.clone(), 0);
            self.rest = 0..self.rest.len();
        }
        if self.rest.end == self.buffer.len() {
            let additional = self.buffer.len().max(CHUNK_BYTES);
            (self.reserve_memory)(additional)?;
            self.buffer.reserve_exact(additional);
            self.buffer.resize(self.buffer.len() + additional, 0);
        }
        let free = self.buffer.get_mut(self.rest.end..).unwrap_or_default();
        let length = loop {
            match self.source.read(free) {
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
                length => break length.map_err(|cause| cause.to_string())?,
            }
        };
        self.has_ended = length == 0;
        self.rest.end += length.min(free.len());
        Ok(())
    }
}

const TRUNCATED: &str = "the response ends within a message";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A reader that returns a few bytes at a time.
    struct SlowReader<'a>(&'a [u8], usize);

    impl Read for SlowReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let bytes = buffer.len().min(self.1).min(self.0.len());
            let (returned, remaining) = self.0.split_at(bytes);
            buffer[..bytes].copy_from_slice(returned);
            self.0 = remaining;
            Ok(bytes)
        }
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_the_size_of_reads(text in "[ab\n]{0,60}", step in 1_usize..9) {
            let mut source = SlowReader(text.as_bytes(), step);
            let mut reserve_memory = |_: usize| Ok(());
            let mut pieces = Pieces::of(&mut source, &mut reserve_memory);
            let mut lines = Vec::new();
            while let Some(line) = pieces.line(100).unwrap() {
                lines.push(String::from_utf8(line.to_vec()).unwrap());
            }
            let expected: Vec<&str> = text.lines().collect();
            prop_assert_eq!(lines, expected);
            prop_assert_eq!(pieces.position(), text.len() as u64);
        }
    }

    #[test]
    fn an_announced_length_reserves_no_memory() {
        // The message announces 2^40 bytes, but has only ten.
        let answer = [&[0x80, 0x80, 0x80, 0x80, 0x80, 0x20][..], &[0; 10]].concat();
        let (mut source, mut reserved) = (&answer[..], 0);
        let mut reserve_memory = |bytes: usize| {
            reserved += bytes;
            Ok(())
        };
        let fault = Pieces::of(&mut source, &mut reserve_memory).message().map(|_| ()).unwrap_err();
        assert_eq!((fault.as_str(), reserved), (TRUNCATED, CHUNK_BYTES));
    }

    #[test]
    fn a_line_uses_only_granted_memory() {
        let text = vec![b'a'; 100 * CHUNK_BYTES];
        let (mut source, mut available) = (&text[..], 3 * CHUNK_BYTES);
        let mut reserve_memory = |bytes: usize| {
            available = available.checked_sub(bytes).ok_or("full")?;
            Ok(())
        };
        let fault = Pieces::of(&mut source, &mut reserve_memory).line(usize::MAX).map(|_| ());
        assert_eq!(fault, Err("full".to_owned()));
        assert_eq!(text.len() - source.len(), 2 * CHUNK_BYTES);
        let mut source = &text[..];
        let fault = Pieces::of(&mut source, &mut |_| Ok(())).line(1000).map(|_| ());
        assert_eq!(fault, Err("a line of more than 1000 bytes".to_owned()));
    }
}
