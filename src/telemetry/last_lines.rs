//! The last lines of the log, for diagnosis.
//!
//! Must never know: the content of lines.

use std::{
    collections::VecDeque,
    io::{self, Write},
};

use console::strip_ansi_codes;
use parking_lot::Mutex;

/// The number of remembered lines; a new line replaces the oldest.
const LINES_MAX: usize = 1000;
/// The maximum length of a remembered line; the rest of a longer line is forgotten.
const LINE_BYTES_MAX: usize = 2048;

static LINES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Returns the last lines of the log, the oldest first.
pub fn last_log_lines() -> Vec<String> {
    LINES.lock().iter().cloned().collect()
}

/// A writer of log lines that remembers the last ones.
pub(super) struct RememberingWriter<W>(pub(super) W);

impl<W: Write> Write for RememberingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        remember(&mut LINES.lock(), &String::from_utf8_lossy(bytes));
        self.0.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn remember(lines: &mut VecDeque<String>, text: &str) {
    for line in strip_ansi_codes(text).lines() {
        while lines.len() >= LINES_MAX {
            lines.pop_front();
        }
        let mut lengths = (0..=line.len().min(LINE_BYTES_MAX)).rev();
        let end = lengths.find(|end| line.is_char_boundary(*end)).unwrap_or(0);
        let (kept, _) = line.split_at(end);
        lines.push_back(kept.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_remembered_and_long_lines_are_cut() {
        let mut lines = VecDeque::new();
        for number in 0..LINES_MAX + 3 {
            remember(&mut lines, &format!("\u{1b}[32mline\u{1b}[0m {number}\n"));
        }
        assert_eq!((lines.len(), &*lines[0]), (LINES_MAX, "line 3"));
        remember(&mut lines, &"é".repeat(LINE_BYTES_MAX));
        assert_eq!(lines[LINES_MAX - 1].len(), LINE_BYTES_MAX);
    }
}
