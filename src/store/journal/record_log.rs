//! The seam of the log: the records of a store, in order, on any medium.
//!
//! `tests/support/log_conformance.rs` tests every implementation. Must never know: the content of
//! records.

use std::{fmt::Debug, ops::ControlFlow};

use crate::store::error::LogFault;

/// The maximum size of a record in a shared log, in bytes.
pub const RECORD_BYTES_MAX: usize = 8 << 20;

/// Visits the number and the bytes of a record, until it breaks. `None` is a fence: the number
/// passes without a record, because another writer continues the log.
pub type RecordVisitor<'a> = dyn FnMut(u64, Option<&[u8]>) -> ControlFlow<()> + 'a;

/// The end of a log of records with contiguous numbers from 1 on. One writer appends.
pub trait RecordSink: Send + Debug {
    /// Appends a record at the number after the last one, durably.
    ///
    /// After [`LogFault::Unknown`], the log contains the record, or nothing at this number, and the
    /// writer may only append the same bytes at the same number again, which then are there once.
    ///
    /// # Errors
    /// [`LogFault::OutOfOrder`] for any other number, and for other bytes at a number that exists;
    /// [`LogFault::Fenced`] for the number of a fence. The log is unchanged then.
    fn append(&mut self, number: u64, record: &[u8]) -> Result<(), LogFault>;

    /// Notes that the writer cannot apply a record that it appended, so that another writer should
    /// continue the log, if there is one.
    fn give_up(&mut self) {}
}

/// A log of records that can be read.
pub trait RecordLog: RecordSink {
    /// Visits the records after `after` in order, without a gap.
    ///
    /// # Errors
    /// [`LogFault::Cut`] when the log no longer has the record `after + 1`; nothing is visited.
    fn read_after(&mut self, after: u64, visit: &mut RecordVisitor<'_>) -> Result<(), LogFault>;

    /// Allows the log to remove records up to `through`, which all readers have in files. A lower
    /// number than before has no effect.
    ///
    /// # Errors
    /// When the log cannot be written; some records may be removed.
    fn cut(&mut self, through: u64) -> Result<(), LogFault>;
}
