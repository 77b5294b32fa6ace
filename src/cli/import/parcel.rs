//! Batches with their files, and the text of places in files.

use std::path::Path;

use super::files::Input;
use crate::import::{Location, batcher::NumberedBatch};

/// A batch and the file that contains it.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) file: usize,
    pub(super) numbered: NumberedBatch,
}

/// Formats the locations of the first and the last batch of a request.
pub(super) fn location_of(part: &[Parcel], inputs: &[Input]) -> String {
    let (Some(first), Some(last)) = (part.first(), part.last()) else { return String::new() };
    let start = shown(&inputs[first.file].path, first.numbered.locations.0);
    let end = last.numbered.locations.1;
    if first.file == last.file {
        if end == 0 { start } else { format!("{start}-{end}") }
    } else {
        format!("{start} to {}", shown(&inputs[last.file].path, end))
    }
}

/// Formats a location in a file.
pub(super) fn shown(path: &Path, location: Location) -> String {
    match location {
        0 => path.display().to_string(),
        line => format!("{}:{line}", path.display()),
    }
}
