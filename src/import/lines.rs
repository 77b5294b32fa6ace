//! Lines of files of any size, with their numbers, in bounded memory.

use std::io::{self, BufRead, Read};

use super::{Location, SourceFault};
use crate::{ingest::rows::Rows, policy::RefusalReason};

/// The maximum length of a line; longer ones are refused.
const LINE_BYTES_MAX: usize = 1 << 20;
/// The maximum distance within which the end of a quoted text is searched for.
const JOINED_BYTES_MAX: usize = 1 << 13;

/// The next line.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// A line, whose content is in `Lines::text`.
    Text(Location),
    /// A line that exceeds the limit; it was skipped.
    TooLong(Location),
}

/// A reader of lines.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    /// The current line without its end.
    pub(super) text: Vec<u8>,
    /// Lines that were read ahead and will be returned again.
    pushed_back: io::Cursor<Vec<u8>>,
    /// The number of lines read so far.
    number: Location,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, text: Vec::new(), pushed_back: io::Cursor::default(), number: 0 }
    }

    /// Returns the next line. When `is_open` reports an open quote, the following lines up to the
    /// closing quote are joined; without a closing quote nearby, the line is not joined.
    fn next(&mut self, is_open: impl Fn(&[u8]) -> bool) -> Result<Option<Line>, SourceFault> {
        self.text.clear();
        let location = self.number + 1;
        if !self.append().map_err(|cause| SourceFault::Read { line: location, cause })? {
            return Ok(None);
        }
        if self.text.len() > LINE_BYTES_MAX {
            return Ok(Some(Line::TooLong(location)));
        }
        if is_open(&self.text) {
            let alone = self.text.len();
            self.join_quoted(&is_open)
                .map_err(|cause| SourceFault::Read { line: location, cause })?;
            if is_open(&self.text) {
                self.push_back(alone);
                self.number = location;
            }
        }
        while self.text.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            self.text.pop();
        }
        Ok(Some(Line::Text(location)))
    }

    /// Returns the location of the next line. A line that exceeds the limit is refused and becomes
    /// empty.
    pub(super) fn next_or_refuse(
        &mut self,
        is_open: impl Fn(&[u8]) -> bool,
        rows: &mut Rows<'_>,
    ) -> Result<Option<Location>, SourceFault> {
        Ok(self.next(is_open)?.map(|line| match line {
            Line::Text(location) => location,
            Line::TooLong(location) => {
                self.text.clear();
                rows.refuse(RefusalReason::BadSample, 1, || {
                    format!("the line is longer than {LINE_BYTES_MAX} bytes")
                });
                location
            }
        }))
    }

    fn join_quoted(&mut self, is_open: impl Fn(&[u8]) -> bool) -> io::Result<()> {
        while self.text.len() < JOINED_BYTES_MAX && is_open(&self.text) && self.append()? {}
        Ok(())
    }

    fn push_back(&mut self, from: usize) {
        let read = self.pushed_back.position() as usize;
        let mut all = self.text.split_off(from);
        all.extend_from_slice(self.pushed_back.get_ref().get(read..).unwrap_or_default());
        self.pushed_back = io::Cursor::new(all);
    }

    /// Appends one line with its end, or the start of a line that exceeds the limit; returns false
    /// at the end.
    fn append(&mut self) -> io::Result<bool> {
        let limit = LINE_BYTES_MAX as u64 + 1;
        let before = self.text.len();
        self.pushed_back.read_until(b'\n', &mut self.text)?;
        if !self.text.ends_with(b"\n") || self.text.len() == before {
            (&mut self.input).take(limit).read_until(b'\n', &mut self.text)?;
        }
        if self.text.len() == before {
            return Ok(false);
        }
        self.number += 1;
        if self.text.len() - before > LINE_BYTES_MAX && self.text.last() != Some(&b'\n') {
            self.skip_line()?;
        }
        Ok(true)
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let (length, done) = match end {
                Some(end) => (end + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            self.input.consume(length);
            if done {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], is_open: fn(&[u8]) -> bool) -> Vec<(Location, String)> {
        let mut lines = Lines::new(text);
        let mut out = Vec::new();
        while let Some(line) = lines.next(is_open).unwrap() {
            out.push(match line {
                Line::Text(location) => {
                    (location, String::from_utf8_lossy(&lines.text).into_owned())
                }
                Line::TooLong(location) => (location, "too long".to_owned()),
            });
        }
        out
    }

    fn has_open_quote(line: &[u8]) -> bool {
        line.iter().fold(false, |open, byte| open ^ (*byte == b'"'))
    }

    fn shown(lines: &[(Location, String)]) -> Vec<(Location, &str)> {
        lines.iter().map(|(location, text)| (*location, text.as_str())).collect()
    }

    #[test]
    fn lines_have_numbers_and_lines_within_quotes_are_joined() {
        let lines = read(b"a\r\n\nb\nc", |_| false);
        assert_eq!(shown(&lines), [(1, "a"), (2, ""), (3, "b"), (4, "c")]);
        let lines = read(b"a\n\"b\nc\",d\ne\n", has_open_quote);
        assert_eq!(shown(&lines), [(1, "a"), (2, "\"b\nc\",d"), (4, "e")]);
    }

    #[test]
    fn an_unclosed_quote_affects_only_its_own_line() {
        let lines = read(b"a\n\"b\nc\nd", has_open_quote);
        assert_eq!(shown(&lines), [(1, "a"), (2, "\"b"), (3, "c"), (4, "d")]);
        let mut text = b"\"open\n".to_vec();
        (0..20_000).for_each(|_| text.extend_from_slice(b"line\n"));
        text.extend_from_slice(b"\"two\nlines\"\n");
        let lines = read(&text, has_open_quote);
        assert_eq!(lines.len(), 20_002);
        assert_eq!(lines[20_001], (20_002, "\"two\nlines\"".to_owned()));
    }

    #[test]
    fn a_line_that_exceeds_the_limit_is_skipped() {
        let mut text = vec![b'x'; LINE_BYTES_MAX * 3];
        text.extend_from_slice(b"\nb\n");
        assert_eq!(shown(&read(&text, |_| false)), [(1, "too long"), (2, "b")]);
    }
}
