//! The fuzz targets of the store: bytes as rows of the journal's tables and of the head, and as
//! parts of segments.
//!
//! Must never know: the other fuzz targets.

use super::{
    dictionary::changes,
    documents::segment,
    head,
    journal::{granularities::StoredGranularity, log, record, series_row},
    states,
};

/// Fuzz entry point: decodes bytes as rows of the journal's tables.
///
/// # Panics
/// When a decoder has a bug.
pub fn fuzz_rows(bytes: &[u8]) {
    record::fuzz(bytes);
    log::read::fuzz(bytes);
    series_row::fuzz_rows(bytes);
    states::fuzz_rows(bytes);
    changes::fuzz_rows(bytes);
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Some(stored) = StoredGranularity::from_text("1m", text)
    {
        assert_eq!(StoredGranularity::from_text("1m", &stored.to_text()), Some(stored));
    }
}

/// Fuzz entry point: decodes bytes as a tile of a segment, or as one of its blocks.
pub fn fuzz_sealed(bytes: &[u8]) {
    segment::fuzzing::read(bytes);
}

/// Fuzz entry point: decodes bytes as a row of the head.
pub fn fuzz_head(bytes: &[u8]) {
    head::fuzzing::read(bytes);
}
