//! Import: files of other stores to numbered batches, the same batches each time.
//!
//! One file for each format, from bytes to `ingest`'s rows; `intake.rs` makes batches of them.
//! Must never know: where the files lie, the daemon, HTTP.

pub mod batcher;
pub mod csv;
pub mod influx;
pub mod intake;
mod lines;
pub mod openmetrics;
pub mod remote_write;
pub mod selection;
pub mod time;
pub mod whisper;

use std::io;

use crate::{ingest::rows::Rows, model::UnixMillis};

/// Where in a file something is: a line counting from 1, or 0 for the file as a whole.
pub type Place = u64;

/// Time of a sample that has none: it is refused.
pub(crate) const NO_TIME: UnixMillis = UnixMillis::EARLIEST;

/// A file's samples, a piece at a time.
pub trait Source {
    /// Reads the next piece into the rows; `None` at the end. A bad piece is refused there and
    /// spoils no other.
    ///
    /// # Errors
    /// When the rest of the file cannot be read.
    fn read(&mut self, rows: &mut Rows<'_>) -> Result<Option<Place>, SourceFault>;
}

/// Why the rest of a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceFault {
    /// The operating system, or the decompression, says so.
    #[error("line {line}: {cause}")]
    Read {
        /// How far it was read.
        line: Place,
        /// What happened.
        #[source]
        cause: io::Error,
    },
    /// It is not in this format.
    #[error("{0}")]
    Damaged(String),
}
