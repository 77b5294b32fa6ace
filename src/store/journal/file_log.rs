//! The journal's log as a log of records without tables.
//!
//! Must never know: the content of records.

use std::{ops::ControlFlow, sync::Arc};

use super::{
    Journal,
    record_log::{RecordLog, RecordSink, RecordVisitor},
};
use crate::store::{
    error::{LogFault, StoreError},
    file::medium::Medium,
};

/// A log of records in files.
#[derive(Debug)]
pub struct FileLog {
    journal: Journal,
    /// The number of the last record.
    last: u64,
}

impl FileLog {
    /// Opens the log of a medium, or creates it.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn open(medium: &Arc<dyn Medium>) -> Result<Self, StoreError> {
        let journal = Journal::open(medium)?;
        // Without a record, the first file has the number of the next one.
        let mut last = journal.first_number().map_or(0, |first| first - 1);
        journal.records_after(last, |number, _| {
            last = number;
            Ok(())
        })?;
        Ok(Self { journal, last })
    }

    /// Sets the size from which the log continues in a new file.
    pub fn set_file_bytes(&mut self, bytes: u64) {
        self.journal.set_log_file_bytes(bytes);
    }

    /// Returns true when the log has these bytes at a number.
    fn has(&mut self, number: u64, record: &[u8]) -> Result<bool, LogFault> {
        let mut is_same = false;
        self.read_after(number.saturating_sub(1), &mut |_, known| {
            is_same = known == Some(record);
            ControlFlow::Break(())
        })?;
        Ok(is_same)
    }
}

impl RecordSink for FileLog {
    fn append(&mut self, number: u64, record: &[u8]) -> Result<(), LogFault> {
        let next = self.last + 1;
        if number != next {
            let is_again = number <= self.last && self.has(number, record)?;
            return if is_again { Ok(()) } else { Err(LogFault::OutOfOrder { number, next }) };
        }
        let appended = self.journal.append(number, record, 0, &[]);
        appended.map_err(|cause| LogFault::Unknown { number, cause: cause.into() })?;
        self.last = number;
        Ok(())
    }
}

impl RecordLog for FileLog {
    fn read_after(&mut self, after: u64, visit: &mut RecordVisitor<'_>) -> Result<(), LogFault> {
        if let Some(first) = self.journal.first_number()
            && after + 1 < first
        {
            return Err(LogFault::Cut { cut: first - 1 });
        }
        let (mut is_over, last) = (false, self.last);
        self.journal.records_after(after, |number, record| {
            // A failed append may leave a record after the last one, which the next append removes.
            is_over = is_over || number > last || visit(number, Some(record)).is_break();
            Ok(())
        })?;
        Ok(())
    }

    fn cut(&mut self, through: u64) -> Result<(), LogFault> {
        Ok(self.journal.remove_records(through.min(self.last))?)
    }
}
