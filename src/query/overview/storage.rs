//! The store's disk and memory usage: partitions, journal, head, catalog.
//!
//! Must never know: HTTP, the roles that write and remove data.

use std::ops::Range;

use serde::Serialize;

use crate::{
    model::{GranularityIndex, UnixMillis},
    query::StoredPartition,
    store::{CheckpointBounds, PartitionInfo, ShellsOfSpan, Store},
};

/// Maximum number of partitions whose documents are counted; each requires reading a file.
const COUNTED_MAX: usize = 1000;

/// The usage of the store.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the types explain the fields")]
pub struct StorageAnswer {
    pub now: i64,
    /// Bytes of all files on disk.
    pub bytes: u64,
    pub series: usize,
    /// The granularities of the settings, followed by the levels of rules of retention and by removed
    /// granularities that still have files.
    pub granularities: Vec<StoredGranularity>,
    /// The rules of retention that select series.
    pub rules: Vec<RuleSeries>,
    pub journal: StoredJournal,
    pub head: StoredBytes,
    pub catalog: BoundedBytes,
    pub objects: StoredBytes,
    pub checker: CheckerAnswer,
    /// Files that were set aside because of damage.
    pub damaged: Vec<String>,
}

/// A rule of retention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleSeries {
    /// The name of the rule.
    pub name: String,
    /// Number of its series.
    pub series: usize,
}

/// A granularity and its partitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the types explain the fields")]
pub struct StoredGranularity {
    pub name: String,
    pub slot_ms: i64,
    pub retention: String,
    /// The partitions in ascending order.
    pub partitions: Vec<ListedPartition>,
    /// The end of the last document that was preallocated and has not begun; `None` without one.
    pub preallocated_until: Option<i64>,
}

/// A partition in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedPartition {
    /// The file of the partition.
    #[serde(flatten)]
    pub partition: StoredPartition,
    /// The state of the partition.
    pub state: PartitionState,
    /// Number of documents, including shells; `None` when they were not counted.
    pub documents: Option<u64>,
    /// Number of preallocated documents that have not begun; `None` when they cannot be read.
    pub shells: Option<u64>,
}

/// The state of a partition at the current time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PartitionState {
    /// The partition begins in the future.
    Ahead,
    /// The partition contains the current time.
    Open,
    /// The partition has ended. Late samples still update its documents.
    Over,
    /// The partition has ended and its documents are compressed. Late samples are stored next to
    /// the documents, or the documents are opened again.
    Sealed,
}

/// The journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredJournal {
    /// Bytes of records since the last checkpoint.
    pub bytes: usize,
    /// Size at which a checkpoint is due.
    pub bytes_max: usize,
    /// Number of records since the last checkpoint.
    pub records: u64,
    /// Size of the journal's files.
    pub file_bytes: u64,
}

/// The work of the checker since the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckerAnswer {
    /// Passes over all files.
    pub passes: u64,
    /// Files that were read.
    pub files: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Damaged documents, rows and objects that were found.
    pub faults: u64,
}

/// A size in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the name explains the field")]
pub struct StoredBytes {
    pub bytes: u64,
}

/// A size in bytes and its limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names explain the fields")]
pub struct BoundedBytes {
    pub bytes: usize,
    pub bytes_max: usize,
}

/// Reports the usage of the store.
pub fn storage(store: &Store, bounds: &CheckpointBounds, now: UnixMillis) -> StorageAnswer {
    let partitions = store.partitions();
    let counts_documents = partitions.len() <= COUNTED_MAX;
    let list_partition = |info: &PartitionInfo, ahead: Option<&[ShellsOfSpan]>| {
        let (id, end) = (info.id, info.end);
        let is_in_document = |span: &&ShellsOfSpan| (id.start..end).contains(&span.start);
        let shells =
            ahead.map(|ahead| ahead.iter().filter(is_in_document).map(|span| span.count).sum());
        let documents = if counts_documents { store.documents_of(id) } else { None };
        let documents = documents.map(|documents| documents + shells.unwrap_or(0));
        let partition = StoredPartition::new(info.clone(), store.granularity(id.granularity));
        ListedPartition {
            partition,
            state: PartitionState::new(id.start..end, now, || {
                counts_documents && store.is_sealed(id)
            }),
            documents,
            shells,
        }
    };
    let granularities = store.all_granularities().iter().enumerate().map(|(index, granularity)| {
        let ahead = store.shells_after(GranularityIndex(index), now).ok();
        let of_granularity = partitions.iter().filter(|info| info.id.granularity.0 == index);
        let listed_partitions = of_granularity.map(|info| list_partition(info, ahead.as_deref()));
        let last = ahead.as_ref().and_then(|ahead| ahead.last());
        StoredGranularity {
            name: granularity.name.clone(),
            slot_ms: granularity.width_ms,
            retention: granularity.retention().to_string(),
            partitions: listed_partitions.collect(),
            preallocated_until: last.map(|span| span.end.0),
        }
    });
    let rules = store.series_by_rule(now).into_iter();
    let (journal_bytes, records) = store.journal_waiting();
    let counters = store.counters();
    StorageAnswer {
        now: now.0,
        bytes: store.file_bytes(),
        series: store.all_series().len(),
        granularities: granularities.collect(),
        rules: rules.map(|(name, series)| RuleSeries { name, series }).collect(),
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
        checker: CheckerAnswer {
            passes: counters.checker_passes.get(),
            files: counters.checked_files.get(),
            bytes: counters.checked_bytes.get(),
            faults: counters.checker_faults.get(),
        },
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
