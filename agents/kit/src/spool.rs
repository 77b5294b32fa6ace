//! Batches on disk until the daemon has acknowledged them.
//!
//! One redb file: the sampler appends, one durable commit a round; the sender reads the oldest
//! and removes what was acknowledged. The refs live as long as the file, the epoch until the
//! daemon does not take its numbers any more. It knows
//! nothing of HTTP or of what is measured.

mod error;
mod tables;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::Range,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use granary_protocol::{Batch, SeriesDefinition, encode_batch};
use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata};
use tracing::{info, warn};

pub use self::error::SpoolError;
pub(crate) use self::tables::{SERIES_BYTES_MAX, SERIES_MAX, StoredBatch, Usage};
use self::{
    error::{at, cannot_open, panics_are_damage},
    tables::{
        BATCHES, META, REJECTED, SERIES, begin, decode_definition, encode_definition,
        is_first_older, next_seq, prepare, read_meta, remove_first,
    },
};

const FILE: &str = "spool.redb";
const DAMAGED: &str = "spool.redb.damaged";
const CACHE_BYTES: usize = 1024 * 1024;
/// Refused batches kept for the operator; when full the oldest is forgotten.
const REJECTED_BATCHES_MAX: u64 = 64;
/// A file this much larger than its content is compacted when it is opened.
const SLACK_BYTES: u64 = 16 * 1024 * 1024;

/// What an append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Appended {
    pub(crate) seq: u64,
    pub(crate) dropped_batches: u64,
    pub(crate) dropped_samples: u64,
}

/// The spool file.
#[derive(Debug)]
pub(crate) struct Spool {
    db: Database,
    /// All that waits is of this epoch, whatever is written in it.
    epoch: AtomicI64,
    bytes_max: u64,
    /// Batches of which the newest sample is older are dropped.
    age_max_ms: Option<i64>,
    /// The newest batch that was here when it was opened.
    newest_at_open: u64,
    /// Batches up to this number are in a request right now and are not dropped.
    in_flight_through: Mutex<u64>,
}

impl Spool {
    /// Opens the spool in `folder`, or begins one with the epoch `now_ms`. A damaged file is
    /// renamed and a new one begun.
    pub(crate) fn open(
        folder: &Path,
        agent: &str,
        bytes_max: u64,
        now_ms: i64,
    ) -> Result<Self, SpoolError> {
        fs::create_dir_all(folder)
            .map_err(|cause| SpoolError::Folder { path: folder.to_owned(), cause })?;
        match panics_are_damage("open", || Self::open_file(folder, agent, bytes_max, now_ms)) {
            Err(error) if error.is_damage() => {
                set_aside(folder, &error)?;
                Self::open_file(folder, agent, bytes_max, now_ms)
            }
            result => result,
        }
    }

    fn open_file(
        folder: &Path,
        agent: &str,
        bytes_max: u64,
        now_ms: i64,
    ) -> Result<Self, SpoolError> {
        let path = folder.join(FILE);
        let created = Database::builder().set_cache_size(CACHE_BYTES).create(&path);
        let mut db = created.map_err(|cause| cannot_open(&path, cause))?;
        // redb verifies pages only when asked to; unverified, damage shows in the middle of a
        // round, again after each restart, or is delivered as samples.
        if !db.check_integrity().map_err(|cause| cannot_open(&path, cause))? {
            warn!(path = %path.display(), "the spool was damaged and is repaired");
        }
        let (epoch, usage) = prepare(&db, agent, now_ms)?;
        let file_bytes = fs::metadata(&path).map_or(0, |meta| meta.len());
        if file_bytes > usage.bytes.saturating_mul(2).saturating_add(SLACK_BYTES) {
            db.compact().map_err(at("compact"))?;
        }
        info!(path = %path.display(), epoch, usage.batches, usage.bytes, "opened the spool");
        let epoch = AtomicI64::new(epoch);
        let newest_at_open = next_seq(&db)?.saturating_sub(1);
        let in_flight_through = Mutex::new(0);
        Ok(Self { db, epoch, bytes_max, age_max_ms: None, newest_at_open, in_flight_through })
    }

    /// Bounds the age of what waits, too.
    #[must_use]
    pub(crate) fn with_age_max(self, age: Option<Duration>) -> Self {
        let age_max_ms = age.map(|age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        Self { age_max_ms, ..self }
    }

    /// The newest batch that was here when it was opened; later ones are of this process.
    pub(crate) fn newest_at_open(&self) -> u64 {
        self.newest_at_open
    }

    /// Numbers the batch, stores it with the definitions it introduces, and drops the oldest
    /// batches if the spool is over its bound. On disk when this returns.
    pub(crate) fn append(&self, batch: &mut Batch) -> Result<Appended, SpoolError> {
        const OPERATION: &str = "append a batch";
        let in_flight_through = self.in_flight();
        let txn = begin(&self.db, OPERATION)?;
        let mut appended = Appended::default();
        {
            let mut meta = txn.open_table(META).map_err(at(OPERATION))?;
            let mut batches = txn.open_table(BATCHES).map_err(at(OPERATION))?;
            let mut series = txn.open_table(SERIES).map_err(at(OPERATION))?;
            for definition in &batch.series {
                let bytes = encode_definition(definition);
                series.insert(definition.reference, &*bytes).map_err(at(OPERATION))?;
            }
            appended.seq = read_meta(&meta, "next_seq")?;
            batch.seq = appended.seq;
            batch.epoch = self.epoch();
            let mut encoded = Vec::new();
            encode_batch(batch, &mut encoded);
            batches.insert(batch.seq, &*encoded).map_err(at(OPERATION))?;
            let mut bytes = read_meta(&meta, "bytes")? + encoded.len() as u64;
            // Neither what is in a request nor the new batch itself is dropped.
            let mut droppable = *in_flight_through + 1..batch.seq;
            let oldest_ms = self.age_max_ms.zip(batch.times.iter().max().copied());
            let oldest_ms = oldest_ms.map(|(age, now)| now.saturating_sub(age));
            while bytes > self.bytes_max || is_first_older(&batches, &droppable, oldest_ms)? {
                let Some(dropped) = remove_first(&mut batches, &mut droppable)? else { break };
                bytes = bytes.saturating_sub(dropped.bytes.len() as u64);
                appended.dropped_batches += 1;
                appended.dropped_samples += dropped.samples();
            }
            meta.insert("bytes", bytes).map_err(at(OPERATION))?;
            meta.insert("next_seq", batch.seq + 1).map_err(at(OPERATION))?;
        }
        txn.commit().map_err(at(OPERATION))?;
        Ok(appended)
    }

    /// The oldest batches: at least one if there is any, else as many as fit both bounds. They
    /// are not dropped until [`Spool::release`] or [`Spool::acknowledge`].
    pub(crate) fn fetch(
        &self,
        batches_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<StoredBatch>, SpoolError> {
        const OPERATION: &str = "read the oldest batches";
        let mut in_flight_through = self.in_flight();
        let txn = self.db.begin_read().map_err(at(OPERATION))?;
        let table = txn.open_table(BATCHES).map_err(at(OPERATION))?;
        let mut fetched = Vec::new();
        let mut bytes = 0;
        for entry in table.iter().map_err(at(OPERATION))? {
            let (seq, value) = entry.map_err(at(OPERATION))?;
            bytes += value.value().len();
            if !fetched.is_empty() && (bytes > bytes_max || fetched.len() >= batches_max) {
                break;
            }
            *in_flight_through = seq.value();
            fetched.push(StoredBatch { seq: seq.value(), bytes: value.value().to_vec() });
        }
        Ok(fetched)
    }

    /// The newest batches, oldest of them first, as many as fit both bounds; none when the numbers
    /// that wait span less or more than `span`. They are not dropped until [`Spool::release`] or
    /// [`Spool::acknowledge`].
    pub(crate) fn fetch_newest(
        &self,
        batches_max: usize,
        bytes_max: usize,
        span: Range<u64>,
    ) -> Result<Vec<StoredBatch>, SpoolError> {
        const OPERATION: &str = "read the newest batches";
        let mut in_flight_through = self.in_flight();
        let txn = self.db.begin_read().map_err(at(OPERATION))?;
        let table = txn.open_table(BATCHES).map_err(at(OPERATION))?;
        let first = table.first().map_err(at(OPERATION))?.map_or(0, |(seq, _)| seq.value());
        let last = table.last().map_err(at(OPERATION))?.map_or(0, |(seq, _)| seq.value());
        if !span.contains(&(last - first)) {
            return Ok(Vec::new());
        }
        let mut fetched = Vec::new();
        let mut bytes = 0;
        for entry in table.iter().map_err(at(OPERATION))?.rev() {
            let (seq, value) = entry.map_err(at(OPERATION))?;
            bytes += value.value().len();
            if !fetched.is_empty() && (bytes > bytes_max || fetched.len() >= batches_max) {
                break;
            }
            fetched.push(StoredBatch { seq: seq.value(), bytes: value.value().to_vec() });
        }
        fetched.reverse();
        *in_flight_through = last;
        Ok(fetched)
    }

    /// Ends the protection of fetched batches: the request failed.
    pub(crate) fn release(&self) {
        *self.in_flight() = 0;
    }

    /// Removes batches that the daemon has.
    pub(crate) fn acknowledge(&self, seqs: &[u64]) -> Result<(), SpoolError> {
        self.remove(seqs, false)
    }

    /// Moves a batch that the daemon will never take out of the queue.
    pub(crate) fn reject(&self, seq: u64) -> Result<(), SpoolError> {
        self.remove(&[seq], true)
    }

    fn remove(&self, seqs: &[u64], keep_as_rejected: bool) -> Result<(), SpoolError> {
        const OPERATION: &str = "remove delivered batches";
        let mut in_flight_through = self.in_flight();
        let txn = begin(&self.db, OPERATION)?;
        {
            let mut meta = txn.open_table(META).map_err(at(OPERATION))?;
            let mut batches = txn.open_table(BATCHES).map_err(at(OPERATION))?;
            let mut bytes = read_meta(&meta, "bytes")?;
            for seq in seqs {
                let Some(removed) = remove_first(&mut batches, &mut (*seq..*seq + 1))? else {
                    continue;
                };
                bytes = bytes.saturating_sub(removed.bytes.len() as u64);
                if keep_as_rejected {
                    let mut rejected = txn.open_table(REJECTED).map_err(at(OPERATION))?;
                    rejected.insert(seq, &*removed.bytes).map_err(at(OPERATION))?;
                    if rejected.len().map_err(at(OPERATION))? > REJECTED_BATCHES_MAX {
                        rejected.pop_first().map_err(at(OPERATION))?;
                    }
                }
            }
            meta.insert("bytes", bytes).map_err(at(OPERATION))?;
        }
        txn.commit().map_err(at(OPERATION))?;
        *in_flight_through = 0;
        Ok(())
    }

    /// The definitions of these refs; one that is not known is left out.
    pub(crate) fn definitions(
        &self,
        refs: &BTreeSet<u32>,
    ) -> Result<BTreeMap<u32, SeriesDefinition>, SpoolError> {
        const OPERATION: &str = "read series definitions";
        let txn = self.db.begin_read().map_err(at(OPERATION))?;
        let table = txn.open_table(SERIES).map_err(at(OPERATION))?;
        let mut definitions = BTreeMap::new();
        for reference in refs {
            let stored = table.get(reference).map_err(at(OPERATION))?;
            if let Some(definition) = stored.and_then(|bytes| decode_definition(bytes.value())) {
                definitions.insert(*reference, definition);
            }
        }
        Ok(definitions)
    }

    /// Gives every definition of the epoch.
    pub(crate) fn each_definition(
        &self,
        mut take: impl FnMut(SeriesDefinition),
    ) -> Result<(), SpoolError> {
        const OPERATION: &str = "read series definitions";
        let txn = self.db.begin_read().map_err(at(OPERATION))?;
        let table = txn.open_table(SERIES).map_err(at(OPERATION))?;
        for entry in table.iter().map_err(at(OPERATION))? {
            let (_, bytes) = entry.map_err(at(OPERATION))?;
            decode_definition(bytes.value()).into_iter().for_each(&mut take);
        }
        Ok(())
    }

    /// What is waiting.
    pub(crate) fn usage(&self) -> Result<Usage, SpoolError> {
        const OPERATION: &str = "count what is waiting";
        let txn = self.db.begin_read().map_err(at(OPERATION))?;
        let batches = txn.open_table(BATCHES).map_err(at(OPERATION))?;
        let meta = txn.open_table(META).map_err(at(OPERATION))?;
        Ok(Usage {
            batches: batches.len().map_err(at(OPERATION))?,
            bytes: read_meta(&meta, "bytes")?,
        })
    }

    /// When this spool began, or began to number anew, in Unix milliseconds.
    pub(crate) fn epoch(&self) -> i64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Begins a new epoch, for all that waits and all that comes. Numbers go on counting, so that
    /// none is given twice whatever the clock says.
    pub(crate) fn begin_epoch(&self, epoch: i64) -> Result<(), SpoolError> {
        const OPERATION: &str = "begin a new epoch";
        let mut in_flight_through = self.in_flight();
        let txn = begin(&self.db, OPERATION)?;
        {
            let mut meta = txn.open_table(META).map_err(at(OPERATION))?;
            meta.insert("epoch", epoch as u64).map_err(at(OPERATION))?;
        }
        txn.commit().map_err(at(OPERATION))?;
        self.epoch.store(epoch, Ordering::Relaxed);
        *in_flight_through = 0;
        Ok(())
    }

    fn in_flight(&self) -> MutexGuard<'_, u64> {
        self.in_flight_through.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Renames the damaged file, so that its content can be looked at and a new spool can begin.
pub(crate) fn set_aside(folder: &Path, error: &SpoolError) -> Result<(), SpoolError> {
    let damaged = folder.join(DAMAGED);
    warn!(
        error = error as &dyn std::error::Error,
        kept_as = %damaged.display(),
        "the spool is damaged; its undelivered samples are lost and a new epoch begins"
    );
    fs::rename(folder.join(FILE), damaged)
        .map_err(|cause| SpoolError::Folder { path: folder.to_owned(), cause })
}

#[cfg(test)]
mod tests;
