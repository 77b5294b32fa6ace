//! The tables of the spool's file and the format of their rows.
//!
//! Must never know: requests, and when a batch is dropped.

use granary_protocol::{Batch, SeriesDefinition, decode_batch, encode_batch};
use redb::{
    Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition,
    WriteTransaction,
};
use tracing::warn;

use super::error::{SpoolError, at};

pub(super) const BATCHES: TableDefinition<u64, &[u8]> = TableDefinition::new("batches");
pub(super) const REJECTED: TableDefinition<u64, &[u8]> = TableDefinition::new("rejected");
pub(super) const SERIES: TableDefinition<u32, &[u8]> = TableDefinition::new("series");
pub(super) const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
const NAMES: TableDefinition<&str, &str> = TableDefinition::new("names");

/// The maximum number of refs in an epoch. A new epoch starts when half of them are used and no
/// batch is waiting.
pub(crate) const SERIES_MAX: u32 = 200_000;
/// The maximum size of names and tags in an epoch. A new epoch also starts when half of it is used.
pub(crate) const SERIES_BYTES_MAX: usize = 8 * 1024 * 1024;

/// An encoded batch and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredBatch {
    pub(crate) seq: u64,
    pub(crate) bytes: Vec<u8>,
}

impl StoredBatch {
    /// Returns the number of samples, or 0 when the batch cannot be decoded.
    pub(crate) fn samples(&self) -> u64 {
        decode_batch(&self.bytes).map_or(0, |view| view.len() as u64)
    }
}

/// The number and size of waiting batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SpoolUsage {
    pub(crate) batches: u64,
    pub(crate) bytes: u64,
}

/// Creates the tables of a new spool, or reads the tables of an existing spool.
pub(super) fn prepare(
    db: &Database,
    agent: &str,
    now_ms: i64,
) -> Result<(i64, SpoolUsage), SpoolError> {
    const OPERATION: &str = "prepare the tables";
    let txn = begin(db, OPERATION)?;
    let epoch;
    let usage;
    {
        let mut meta = txn.open_table(META).map_err(at(OPERATION))?;
        let mut names = txn.open_table(NAMES).map_err(at(OPERATION))?;
        let batches = txn.open_table(BATCHES).map_err(at(OPERATION))?;
        txn.open_table(REJECTED).map_err(at(OPERATION))?;
        let series = txn.open_table(SERIES).map_err(at(OPERATION))?;
        let waiting = batches.len().map_err(at(OPERATION))?;
        let defined = series.len().map_err(at(OPERATION))?;
        // A definition is longer than its names and tags.
        let defined_bytes = series.stats().map_err(at(OPERATION))?.stored_bytes();
        drop(series);
        let stored = meta.get("epoch").map_err(at(OPERATION))?.map(|epoch| epoch.value());
        let is_half_used =
            defined > u64::from(SERIES_MAX / 2) || defined_bytes > SERIES_BYTES_MAX as u64 / 2;
        let is_worn_out = waiting == 0 && is_half_used;
        epoch = match stored {
            Some(epoch) if !is_worn_out => epoch as i64,
            _ => {
                txn.delete_table(SERIES).map_err(at(OPERATION))?;
                txn.open_table(SERIES).map_err(at(OPERATION))?;
                meta.insert("epoch", now_ms as u64).map_err(at(OPERATION))?;
                now_ms
            }
        };
        if stored.is_none() {
            meta.insert("next_seq", 1).map_err(at(OPERATION))?;
            meta.insert("bytes", 0).map_err(at(OPERATION))?;
        }
        let before = names.insert("agent", agent).map_err(at(OPERATION))?;
        if let Some(before) = before.filter(|before| before.value() != agent) {
            warn!(
                before = before.value(),
                agent, "the agent's name changed; waiting batches keep the old name"
            );
        }
        usage = SpoolUsage { batches: waiting, bytes: read_meta(&meta, "bytes")? };
    }
    txn.commit().map_err(at(OPERATION))?;
    Ok((epoch, usage))
}

/// Starts a write transaction whose commit is durable and needs no repair after a crash.
pub(super) fn begin(
    db: &Database,
    operation: &'static str,
) -> Result<WriteTransaction, SpoolError> {
    let mut txn = db.begin_write().map_err(at(operation))?;
    txn.set_quick_repair(true);
    Ok(txn)
}

pub(super) fn read_meta(
    meta: &impl ReadableTable<&'static str, u64>,
    key: &str,
) -> Result<u64, SpoolError> {
    let value = meta.get(key).map_err(at("read the counters"))?;
    value.map(|value| value.value()).ok_or_else(|| SpoolError::Store {
        operation: "read the counters",
        cause: Box::new(redb::Error::Corrupted(format!("meta.{key} is missing"))),
    })
}

/// Returns the number of the next batch.
pub(super) fn next_seq(db: &Database) -> Result<u64, SpoolError> {
    const OPERATION: &str = "read the counters";
    let txn = db.begin_read().map_err(at(OPERATION))?;
    read_meta(&txn.open_table(META).map_err(at(OPERATION))?, "next_seq")
}

/// Encodes a definition as a batch with one definition and no samples.
pub(super) fn encode_definition(definition: &SeriesDefinition) -> Vec<u8> {
    let batch =
        Batch { agent: "-".to_owned(), series: vec![definition.clone()], ..Batch::default() };
    let mut bytes = Vec::new();
    encode_batch(&batch, &mut bytes);
    bytes
}

pub(super) fn decode_definition(bytes: &[u8]) -> Option<SeriesDefinition> {
    decode_batch(bytes).ok()?.series.first().map(SeriesDefinition::from)
}
