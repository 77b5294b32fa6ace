//! The open partitions, by granularity and start.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use parking_lot::RwLock;

use super::{
    error::StoreError,
    layouts::Layouts,
    medium::Medium,
    partition::{Partition, PartitionId},
};
use crate::model::{GranularitySet, UnixMillis};

/// See the module.
#[derive(Debug)]
pub(crate) struct Partitions {
    granularities: Arc<GranularitySet>,
    layouts: Vec<Arc<Layouts>>,
    medium: Arc<dyn Medium>,
    open: RwLock<BTreeMap<PartitionId, Arc<Partition>>>,
}

/// What is known of a partition from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionInfo {
    /// Granularity and start.
    pub id: PartitionId,
    /// When it ends, exclusive.
    pub end: UnixMillis,
    /// Its file below the data directory.
    pub file: String,
    /// Bytes that the file takes.
    pub bytes: u64,
}

impl Partitions {
    /// Opens every partition of the medium.
    pub(crate) fn open(
        medium: Arc<dyn Medium>,
        granularities: Arc<GranularitySet>,
    ) -> Result<Self, StoreError> {
        let layouts =
            granularities.levels().iter().map(|level| Arc::new(Layouts::new(level))).collect();
        let this = Self { granularities, layouts, medium, open: RwLock::default() };
        for (level, granularity) in this.granularities.levels().iter().enumerate() {
            let folder = format!("partitions/{}", granularity.name);
            let names = this.medium.list(&folder).map_err(|cause| StoreError::Io {
                operation: "list",
                file: folder,
                cause,
            })?;
            for name in names {
                let Some(start) = Partition::start_of_file(granularity, &name) else {
                    tracing::warn!(name, "passed over a file that is no partition");
                    continue;
                };
                this.get_or_create(PartitionId { level, start })?;
            }
        }
        Ok(this)
    }

    /// The partition, if it is there.
    pub(crate) fn get(&self, id: PartitionId) -> Option<Arc<Partition>> {
        self.open.read().get(&id).cloned()
    }

    /// The partition, created when it is not there.
    pub(crate) fn get_or_create(&self, id: PartitionId) -> Result<Arc<Partition>, StoreError> {
        if let Some(partition) = self.get(id) {
            return Ok(partition);
        }
        let mut open = self.open.write();
        if let Some(partition) = open.get(&id) {
            return Ok(partition.clone());
        }
        let granularity = &self.granularities.levels()[id.level];
        let layouts = self.layouts[id.level].clone();
        let partition = Arc::new(Partition::open(&*self.medium, id, granularity, layouts)?);
        open.insert(id, partition.clone());
        Ok(partition)
    }

    /// Partitions of a granularity that overlap the range, ascending.
    pub(crate) fn overlapping(&self, level: usize, range: Range<i64>) -> Vec<Arc<Partition>> {
        let open = self.open.read();
        let first = PartitionId { level, start: UnixMillis(i64::MIN) };
        let last = PartitionId { level, start: UnixMillis(range.end - 1) };
        let overlaps = |partition: &&Arc<Partition>| partition.end.0 > range.start;
        open.range(first..=last).map(|(_, p)| p).filter(overlaps).cloned().collect()
    }

    /// All partitions.
    pub(crate) fn all(&self) -> Vec<Arc<Partition>> {
        self.open.read().values().cloned().collect()
    }

    /// All partitions with their sizes.
    pub(crate) fn infos(&self) -> Vec<PartitionInfo> {
        let describe = |partition: Arc<Partition>| PartitionInfo {
            id: partition.id,
            end: partition.end,
            bytes: self.medium.allocated_bytes(&partition.file).unwrap_or(0),
            file: partition.file.clone(),
        };
        self.all().into_iter().map(describe).collect()
    }

    /// Takes a partition out of the map and removes its file. Readers that hold it finish.
    pub(crate) fn remove(&self, id: PartitionId) -> Result<bool, StoreError> {
        let Some(partition) = self.open.write().remove(&id) else { return Ok(false) };
        self.medium.remove(&partition.file).map_err(|cause| StoreError::Io {
            operation: "remove",
            file: partition.file.clone(),
            cause,
        })?;
        Ok(true)
    }
}
