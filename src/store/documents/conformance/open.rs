//! Open documents on trial.
//!
//! Must never know: what is tried.

use std::sync::Arc;

use super::Subject;
use crate::{
    model::{SeriesId, UnixMillis},
    store::{
        documents::open::OpenDocuments,
        journal::{Journal, register::Register},
    },
};

pub(super) const SUBJECT: Subject = Subject {
    name: "open",
    open: |medium, granularities| {
        let journal = Arc::new(Journal::open(&medium)?);
        let register = Arc::new(Register::open(medium.clone(), journal)?);
        Ok(Box::new(OpenDocuments::open(medium, granularities, register)?))
    },
    damage: |bytes, start, series| {
        let head = header(start, series);
        let places = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&head));
        // Older pages may hold it, too.
        for at in places.collect::<Vec<_>>() {
            bytes[at + head.len() + 60] ^= 0x10;
        }
    },
};

/// How the fields of a document lie that say whose it is.
fn header(start: UnixMillis, series: SeriesId) -> Vec<u8> {
    let series = i64::from(series.0).to_le_bytes();
    [b"\x12series\0".as_slice(), &series, b"\x09start\0", &start.0.to_le_bytes()].concat()
}
