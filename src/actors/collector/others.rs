//! The other shards of a store, as a collector sends parts of a request to them.
//!
//! Must never know: nodes, HTTP.

use std::{fmt, pin::Pin};

use bytes::Bytes;
use granary_protocol::IngestAnswer;

use super::answers::{CollectFault, RowsAnswer};
use crate::{ingest::protocol::BatchEncoding, model::ProjectName};

/// The batches of a shard.
#[derive(Debug, Clone)]
pub struct SentBatches {
    /// The batches as BSON.
    pub body: Bytes,
    /// The encoding in which the sender wrote them.
    pub encoding: BatchEncoding,
    /// True when the samples replace the stored ones.
    pub replace: bool,
}

/// The rows of a shard.
#[derive(Debug, Clone)]
pub struct SentRows {
    /// The encoded rows.
    pub body: Bytes,
    /// The sender that is charged for new series.
    pub sender: Box<str>,
}

/// An answer that is not there yet.
pub type Sending<T> = Pin<Box<dyn Future<Output = Result<T, CollectFault>>>>;

/// The other shards of a store.
pub trait OtherShards: fmt::Debug + Send + Sync {
    /// Returns the number of all shards.
    fn count(&self) -> u16;
    /// Sends batches to the holder of a shard.
    fn send_batches(
        &self,
        shard: u16,
        of: &ProjectName,
        batches: SentBatches,
    ) -> Sending<IngestAnswer>;
    /// Sends rows to the holder of a shard.
    fn send_rows(&self, shard: u16, of: &ProjectName, rows: SentRows) -> Sending<RowsAnswer>;
}
