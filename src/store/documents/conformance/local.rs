//! The tested implementation: local documents, either open or sealed at once.
//!
//! Must never know: what is tested.

use std::sync::Arc;

use super::Subject;
use crate::{
    model::{Granularity, SeriesId, UnixMillis},
    store::{
        documents::{Documents, local::LocalDocuments},
        error::StoreError,
        file::{
            medium::Medium,
            names::{segment_file, segment_number},
        },
        journal::{Journal, register::Register},
    },
};

/// Local documents that are sealed only on request.
pub(super) const SUBJECT: Subject = Subject {
    name: "open",
    open: |medium, granularities| open(medium, granularities, usize::MAX),
    holder: |_, name| name,
    damage: |bytes, start, series| {
        let head = header(start, series);
        let positions = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&head));
        // Older pages may also contain the document.
        for at in positions.collect::<Vec<_>>() {
            bytes[at + head.len() + 60] ^= 0x10;
        }
    },
};

/// Local documents that are sealed when they are created.
pub(super) const SEALED: Subject = Subject {
    name: "sealed",
    open: |medium, granularities| open(medium, granularities, 1),
    holder: |medium, name| segment_of(medium, &name).unwrap_or(name),
    damage: |bytes, _, series| {
        assert_eq!(series.0, 7, "the first of its tile");
        // The series' block follows the head of the first tile, whose length is in the index.
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let index = number(bytes.len() - 64 + 32);
        let head = number(index + 16);
        bytes[head + 3] ^= 0x10;
    },
};

fn open(
    medium: Arc<dyn Medium>,
    granularities: Vec<Granularity>,
    sealed_min: usize,
) -> Result<Box<dyn Documents>, StoreError> {
    let journal = Arc::new(Journal::open(&medium)?);
    let register = Arc::new(Register::open(medium.clone(), journal)?);
    let documents = LocalDocuments::open(medium, granularities, register)?;
    documents.set_sealed_min(sealed_min);
    Ok(Box::new(documents))
}

/// Returns the last segment of a partition's file.
fn segment_of(medium: &dyn Medium, partition: &str) -> Option<String> {
    let (folder, name_of_partition) = partition.rsplit_once('/')?;
    let names = medium.list(folder).unwrap().into_iter();
    let last = names.filter_map(|name| segment_number(name_of_partition, &name)).max()?;
    Some(segment_file(partition, last))
}

/// Returns the bytes of the fields that identify a document.
fn header(start: UnixMillis, series: SeriesId) -> Vec<u8> {
    let series = i64::from(series.0).to_le_bytes();
    [b"\x12series\0".as_slice(), &series, b"\x09start\0", &start.0.to_le_bytes()].concat()
}
