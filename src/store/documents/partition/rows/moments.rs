//! The removal of second moments from open documents, for releases of format 1.
//!
//! Must never know: segments, whose moments these releases skip.

use std::collections::BTreeMap;

use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use super::layout::DocumentLayout;
use crate::store::{
    documents::partition::{DOCUMENTS, META},
    error::StoreError,
    file::database::DatabaseFile,
};

/// The number of documents that are in memory at the same time.
const DOCUMENTS_AT_A_TIME: usize = 1024;
const OPERATION: &str = "remove moments";

/// The layouts of a partition's documents, by their numbers of slots.
struct Layouts {
    width_ms: i64,
    known: BTreeMap<usize, DocumentLayout>,
}

impl Layouts {
    fn new(width_ms: i64) -> Self {
        Self { width_ms, known: BTreeMap::new() }
    }

    /// Returns a document without its moments; `None` when it has none, or is damaged.
    fn without_moments(&mut self, doc: &[u8]) -> Option<Vec<u8>> {
        let slots = DocumentLayout::slots_with_moments(doc)?;
        let new = || DocumentLayout::new(slots, self.width_ms);
        self.known.entry(slots).or_insert_with(new).without_moments(doc)
    }
}

/// Returns true when an open document of a partition has moments.
pub(crate) fn has_any(file: &DatabaseFile, txn: &ReadTransaction) -> Result<bool, StoreError> {
    let meta = txn.open_table(META).map_err(file.fail("read"))?;
    let width = meta.get("width").map_err(file.fail("read"))?.map_or(0, |width| width.value());
    let mut layouts = Layouts::new(width);
    let documents = txn.open_table(DOCUMENTS).map_err(file.fail("read"))?;
    for row in documents.iter().map_err(file.fail("read"))? {
        let (_, doc) = row.map_err(file.fail("read"))?;
        if layouts.without_moments(doc.value()).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the moments of all open documents of a partition. Damaged documents are left as they
/// are.
pub(crate) fn remove_all(file: &DatabaseFile, txn: &WriteTransaction) -> Result<(), StoreError> {
    let meta = txn.open_table(META).map_err(file.fail(OPERATION))?;
    let width = meta.get("width").map_err(file.fail(OPERATION))?.map_or(0, |width| width.value());
    let mut documents = txn.open_table(DOCUMENTS).map_err(file.fail(OPERATION))?;
    let (mut layouts, mut next) = (Layouts::new(width), Some(0));
    while let Some(from) = next.take() {
        let mut found = Vec::new();
        for row in documents.range(from..).map_err(file.fail(OPERATION))? {
            let (key, doc) = row.map_err(file.fail(OPERATION))?;
            let plain = layouts.without_moments(doc.value());
            found.extend(plain.map(|plain| (key.value(), plain)));
            if found.len() == DOCUMENTS_AT_A_TIME {
                next = key.value().checked_add(1);
                break;
            }
        }
        for (key, plain) in found {
            documents.insert(key, &*plain).map_err(file.fail(OPERATION))?;
        }
    }
    Ok(())
}
