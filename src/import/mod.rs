//! Import of files of other stores: a file always becomes the same numbered batches.
//!
//! Each format has a file, from bytes to `ingest`'s rows; `intake.rs` cuts them into batches. Must
//! never know: where the files are, the daemon, HTTP.

pub mod batcher;
pub mod csv;
pub mod influx;
pub mod intake;
mod lines;
pub mod mongodump;
pub mod openmetrics;
pub mod remote_write;
pub mod samples;
pub mod selection;
pub mod time;
pub mod whisper;

use std::io;

use crate::{ingest::rows::Rows, model::UnixMillis};

/// A location in a file: a line number starting at 1, or 0 for the file as a whole.
pub type Location = u64;

/// The time of a sample without a timestamp, which is refused.
pub(crate) const NO_TIME: UnixMillis = UnixMillis::EARLIEST;

/// A source of samples, read piece by piece.
pub trait Source {
    /// Reads the next piece into the rows; returns `None` at the end. A bad piece is refused
    /// without affecting others.
    ///
    /// # Errors
    /// When the rest of the file cannot be read.
    fn read(&mut self, rows: &mut Rows<'_>) -> Result<Option<Location>, SourceFault>;
}

/// The reason why the rest of a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceFault {
    /// The operating system or the decompression failed.
    #[error("line {line}: {cause}")]
    Read {
        /// The last line that was read.
        line: Location,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// The file does not have this format.
    #[error("{0}")]
    Damaged(String),
}
