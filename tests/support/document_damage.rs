//! Damage of documents in the file of a partition.

use std::path::Path;

use redb::{Database, ReadableTable, TableDefinition};

const DOCUMENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("documents");

/// Flips a bit in the first open document.
pub(crate) fn damage_document(file: &Path) {
    let db = Database::open(file).unwrap();
    let txn = db.begin_write().unwrap();
    {
        let mut table = txn.open_table(DOCUMENTS).unwrap();
        let (key, mut doc) = {
            let (key, doc) = table.first().unwrap().unwrap();
            (key.value(), doc.value().to_vec())
        };
        doc[200] ^= 1;
        table.insert(key, &*doc).unwrap();
    }
    txn.commit().unwrap();
}
