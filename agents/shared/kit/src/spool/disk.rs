//! The spool's file: a redb database that is written in transactions, and reopened after a failed
//! transaction.
//!
//! Must never know: when the file is written, and which batches are dropped.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use granary_protocol::SeriesDefinition;
use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata};
use tracing::{info, warn};

use super::{
    FILE, REJECTED_BATCHES_MAX, SpoolUsage, StoredBatch,
    error::{SpoolError, at, cannot_open, panics_are_damage},
    pending::PendingFileChanges,
    tables::{
        BATCHES, META, REJECTED, SERIES, begin, decode_definition, encode_definition, next_seq,
        prepare,
    },
};

const CACHE_BYTES: usize = 1024 * 1024;
/// The size beyond twice the batches' size from which a file is compacted when it is opened.
const SLACK_BYTES: u64 = 16 * 1024 * 1024;

/// The database file. While it cannot be opened, nothing is read.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) path: PathBuf,
    pub(super) db: Option<Database>,
}

/// The content of a file when it is opened.
pub(super) struct SpoolContent {
    pub(super) disk: Disk,
    pub(super) epoch: i64,
    pub(super) usage: SpoolUsage,
    pub(super) next_seq: u64,
}

/// The counters that are stored with the batches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counters {
    pub(super) epoch: i64,
    pub(super) next_seq: u64,
    pub(super) bytes: u64,
}

impl Disk {
    pub(super) fn open(
        folder: &Path,
        agent: &str,
        now_ms: i64,
    ) -> Result<SpoolContent, SpoolError> {
        let path = folder.join(FILE);
        let mut db = open_database(&path)?;
        // redb verifies pages only on request. Without this check, damage would surface in the
        // middle of a round after each restart, or damaged samples would be delivered.
        if !db.check_integrity().map_err(|cause| cannot_open(&path, cause))? {
            warn!(path = %path.display(), "the spool was damaged and is repaired");
        }
        let (epoch, usage) = prepare(&db, agent, now_ms)?;
        let file_bytes = fs::metadata(&path).map_or(0, |meta| meta.len());
        if file_bytes > usage.bytes.saturating_mul(2).saturating_add(SLACK_BYTES) {
            db.compact().map_err(at("compact"))?;
        }
        info!(path = %path.display(), epoch, usage.batches, usage.bytes, "opened the spool");
        let next_seq = next_seq(&db)?;
        Ok(SpoolContent { disk: Self { path, db: Some(db) }, epoch, usage, next_seq })
    }

    /// Writes all pending changes in one transaction. After a failure the file is reopened, because
    /// redb refuses further reads.
    pub(super) fn write(
        &mut self,
        pending: &PendingFileChanges,
        counters: Counters,
    ) -> Result<(), SpoolError> {
        if self.db.is_none() {
            self.db = Some(open_database(&self.path)?);
        }
        let written = self.db.as_ref().map_or(Ok(()), |db| write(db, pending, counters));
        if written.is_err() {
            let failed_db = self.db.take();
            // Closing the database may write, and fail again.
            let closed = panics_are_damage("close the file", || {
                drop(failed_db);
                Ok(())
            });
            self.db = closed.and_then(|()| open_database(&self.path)).ok();
        }
        written
    }

    /// Visits the batches, oldest or newest first, until `visit` returns false.
    pub(super) fn visit(
        &self,
        is_newest_first: bool,
        visit: impl FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), SpoolError> {
        self.visit_from(0, is_newest_first, visit)
    }

    /// Visits the batches from this number on, see [`Disk::visit`].
    pub(super) fn visit_from(
        &self,
        from: u64,
        is_newest_first: bool,
        mut visit: impl FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), SpoolError> {
        const OPERATION: &str = "read the batches";
        let Some(db) = &self.db else { return Ok(()) };
        let txn = db.begin_read().map_err(at(OPERATION))?;
        let table = txn.open_table(BATCHES).map_err(at(OPERATION))?;
        let mut rows = table.range(from..).map_err(at(OPERATION))?;
        while let Some(row) = if is_newest_first { rows.next_back() } else { rows.next() } {
            let (seq, value) = row.map_err(at(OPERATION))?;
            if !visit(seq.value(), value.value()) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the batch with this number.
    pub(super) fn batch(&self, seq: u64) -> Result<Option<StoredBatch>, SpoolError> {
        const OPERATION: &str = "read a batch";
        let Some(db) = &self.db else { return Ok(None) };
        let txn = db.begin_read().map_err(at(OPERATION))?;
        let table = txn.open_table(BATCHES).map_err(at(OPERATION))?;
        let row = table.get(seq).map_err(at(OPERATION))?;
        Ok(row.map(|value| StoredBatch { seq, bytes: value.value().to_vec() }))
    }

    /// Returns the definitions of these refs; unknown refs are omitted.
    pub(super) fn definitions(
        &self,
        refs: &BTreeSet<u32>,
    ) -> Result<BTreeMap<u32, SeriesDefinition>, SpoolError> {
        const OPERATION: &str = "read series definitions";
        let mut definitions = BTreeMap::new();
        let Some(db) = &self.db else { return Ok(definitions) };
        let txn = db.begin_read().map_err(at(OPERATION))?;
        let table = txn.open_table(SERIES).map_err(at(OPERATION))?;
        for reference in refs {
            let stored = table.get(reference).map_err(at(OPERATION))?;
            if let Some(definition) = stored.and_then(|bytes| decode_definition(bytes.value())) {
                definitions.insert(*reference, definition);
            }
        }
        Ok(definitions)
    }

    /// Visits all definitions.
    pub(super) fn each_definition(
        &self,
        mut take: impl FnMut(SeriesDefinition),
    ) -> Result<(), SpoolError> {
        const OPERATION: &str = "read series definitions";
        let Some(db) = &self.db else { return Ok(()) };
        let txn = db.begin_read().map_err(at(OPERATION))?;
        let table = txn.open_table(SERIES).map_err(at(OPERATION))?;
        for entry in table.iter().map_err(at(OPERATION))? {
            let (_, bytes) = entry.map_err(at(OPERATION))?;
            decode_definition(bytes.value()).into_iter().for_each(&mut take);
        }
        Ok(())
    }
}

fn open_database(path: &Path) -> Result<Database, SpoolError> {
    let opened = Database::builder().set_cache_size(CACHE_BYTES).create(path);
    opened.map_err(|cause| cannot_open(path, cause))
}

/// Writes the changes. They are on disk when the function returns.
fn write(
    db: &Database,
    pending: &PendingFileChanges,
    counters: Counters,
) -> Result<(), SpoolError> {
    const OPERATION: &str = "write batches";
    let txn = begin(db, OPERATION)?;
    {
        let mut meta = txn.open_table(META).map_err(at(OPERATION))?;
        let mut batches = txn.open_table(BATCHES).map_err(at(OPERATION))?;
        let mut series = txn.open_table(SERIES).map_err(at(OPERATION))?;
        // Removals come first, to make room for additions.
        for seq in &pending.removed {
            batches.remove(seq).map_err(at(OPERATION))?;
        }
        for (seq, bytes) in &pending.added {
            batches.insert(seq, &**bytes).map_err(at(OPERATION))?;
        }
        for definition in &pending.definitions {
            let bytes = encode_definition(definition);
            series.insert(definition.reference, &*bytes).map_err(at(OPERATION))?;
        }
        if !pending.rejected.is_empty() {
            let mut rejected = txn.open_table(REJECTED).map_err(at(OPERATION))?;
            for (seq, bytes) in &pending.rejected {
                rejected.insert(seq, &**bytes).map_err(at(OPERATION))?;
            }
            while rejected.len().map_err(at(OPERATION))? > REJECTED_BATCHES_MAX {
                rejected.pop_first().map_err(at(OPERATION))?;
            }
        }
        meta.insert("epoch", counters.epoch as u64).map_err(at(OPERATION))?;
        meta.insert("bytes", counters.bytes).map_err(at(OPERATION))?;
        meta.insert("next_seq", counters.next_seq).map_err(at(OPERATION))?;
    }
    txn.commit().map_err(at(OPERATION))
}
