//! Parsing of a record: unquotes fields and limits their number.
//!
//! Must never know: what the columns mean.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

/// The maximum number of columns.
const COLUMNS_MAX: usize = 4096;

/// A parsed record.
#[derive(Debug)]
pub(super) struct Record {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
    columns: usize,
}

impl Record {
    pub(super) fn new(separator: u8) -> Self {
        let reader = ReaderBuilder::new().delimiter(separator).build();
        Self { reader, text: Vec::new(), ends: vec![0; 64], columns: 0 }
    }

    /// Parses a record, which may contain quoted line breaks.
    pub(super) fn read(&mut self, line: &[u8]) -> Result<(), String> {
        self.columns = 0;
        self.text.resize(self.text.len().max(line.len() + 1), 0);
        self.reader.reset();
        let (mut input, mut length) = (line, 0);
        loop {
            let (result, read, written, ends) = self.reader.read_record(
                input,
                &mut self.text[length..],
                &mut self.ends[self.columns..],
            );
            input = &input[read..];
            length += written;
            self.columns += ends;
            match result {
                // With an empty rest, the next call signals the end of input.
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputEndsFull if self.ends.len() < COLUMNS_MAX => {
                    self.ends.resize(self.ends.len() * 2, 0);
                }
                ReadRecordResult::OutputEndsFull | ReadRecordResult::OutputFull => {
                    return Err(format!("more than {COLUMNS_MAX} columns"));
                }
                ReadRecordResult::Record | ReadRecordResult::End => break,
            }
        }
        if !input.is_empty() {
            return Err("a quote is not closed".to_owned());
        }
        let text = self.text.get(..length).unwrap_or_default();
        std::str::from_utf8(text).map_err(|_| "the line is not UTF-8".to_owned())?;
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.columns
    }

    /// Returns a column, or an empty text when it is missing.
    pub(super) fn get(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let column = (index < self.columns).then(|| self.text.get(start..self.ends[index]));
        std::str::from_utf8(column.flatten().unwrap_or_default()).unwrap_or_default()
    }
}
