//! What the store has on disk and in memory: partitions, journal, head, catalog.
//!
//! Must never know: HTTP, the roles that fill and drop any of it.

use std::ops::Range;

use serde::Serialize;

use crate::{
    model::{GranularityIndex, UnixMillis},
    query::StoredPartition,
    store::{CheckpointBounds, PartitionInfo, Store},
};

/// Partitions of which documents are counted, at most: each is a file that is read.
const COUNTED_MAX: usize = 1000;

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the types say it")]
pub struct StorageAnswer {
    pub now: i64,
    /// That all files take on the disk.
    pub bytes: u64,
    pub series: usize,
    /// Those of the settings, then those that are not in them any more.
    pub granularities: Vec<StoredGranularity>,
    pub journal: StoredJournal,
    pub head: StoredBytes,
    pub catalog: BoundedBytes,
    pub objects: StoredBytes,
    /// Files that were set aside.
    pub damaged: Vec<String>,
}

/// A granularity and its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the types say it")]
pub struct StoredGranularity {
    pub name: String,
    pub slot_ms: i64,
    pub retention: String,
    /// Ascending.
    pub partitions: Vec<ListedPartition>,
}

/// A partition in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedPartition {
    /// Its file.
    #[serde(flatten)]
    pub partition: StoredPartition,
    /// How its time lies to now.
    pub state: PartitionState,
    /// Documents, shells among them; `None` when they are not counted.
    pub documents: Option<u64>,
    /// Shells made ahead of their time; `None` when that is not known.
    pub shells: Option<u64>,
}

/// How a partition's time lies to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PartitionState {
    /// It begins later.
    Ahead,
    /// Now lies in it.
    Open,
    /// It has ended; what is late is still patched in.
    Over,
    /// It has ended, and all of its documents are compressed; what is late lies beside them, or opens them again.
    Sealed,
}

/// The journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredJournal {
    /// Bytes of records that wait for a checkpoint.
    pub bytes: usize,
    /// With more, one is due.
    pub bytes_max: usize,
    /// How many records they are.
    pub records: u64,
    /// Bytes that the file takes.
    pub file_bytes: u64,
}

/// A size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the name says it")]
pub struct StoredBytes {
    pub bytes: u64,
}

/// A size and how large it may become.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct BoundedBytes {
    pub bytes: usize,
    pub bytes_max: usize,
}

/// Says what the store has. `shells` knows how many were made for the documents of a granularity
/// that lie in a range.
pub fn storage(
    store: &Store,
    bounds: &CheckpointBounds,
    now: UnixMillis,
    shells: impl Fn(GranularityIndex, Range<UnixMillis>) -> Option<u64>,
) -> StorageAnswer {
    let partitions = store.partitions();
    let counts = partitions.len() <= COUNTED_MAX;
    let listed = |info: &PartitionInfo| {
        let (id, end) = (info.id, info.end);
        let documents = if counts { store.documents_of(id) } else { None };
        let shells =
            if documents == Some(0) { Some(0) } else { shells(id.granularity, id.start..end) };
        let partition = StoredPartition::new(info.clone(), store.granularity(id.granularity));
        ListedPartition {
            partition,
            state: PartitionState::new(id.start..end, now, || counts && store.is_sealed(id)),
            documents,
            shells,
        }
    };
    let granularities = store.all_granularities().iter().enumerate().map(|(index, own)| {
        let of_it = partitions.iter().filter(|info| info.id.granularity.0 == index);
        StoredGranularity {
            name: own.name.clone(),
            slot_ms: own.width_ms,
            retention: own.retention.to_string(),
            partitions: of_it.map(listed).collect(),
        }
    });
    let (journal_bytes, records) = store.journal_waiting();
    StorageAnswer {
        now: now.0,
        bytes: store.file_bytes(),
        series: store.dictionary().len(),
        granularities: granularities.collect(),
        journal: StoredJournal {
            bytes: journal_bytes,
            bytes_max: bounds.journal_bytes_max,
            records,
            file_bytes: store.journal_bytes(),
        },
        head: StoredBytes { bytes: store.head_bytes() },
        catalog: BoundedBytes {
            bytes: store.catalog_bytes(),
            bytes_max: store.cell_bytes_due(bounds),
        },
        objects: StoredBytes { bytes: store.objects_bytes() },
        damaged: store.damaged_partitions(),
    }
}

impl PartitionState {
    fn new(range: Range<UnixMillis>, now: UnixMillis, is_sealed: impl Fn() -> bool) -> Self {
        match range {
            range if now < range.start => Self::Ahead,
            range if now < range.end => Self::Open,
            _ if is_sealed() => Self::Sealed,
            _ => Self::Over,
        }
    }
}
