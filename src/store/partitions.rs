//! The open partitions, by granularity and start.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use parking_lot::RwLock;

use super::{
    database_file::UNFINISHED,
    error::StoreError,
    layouts::Layouts,
    medium::Medium,
    partition::{Partition, PartitionId, set_aside_name},
};
use crate::model::{GranularitySet, UnixMillis};

/// See the module.
#[derive(Debug)]
pub(crate) struct Partitions {
    granularities: Arc<GranularitySet>,
    layouts: Vec<Arc<Layouts>>,
    medium: Arc<dyn Medium>,
    open: RwLock<BTreeMap<PartitionId, Arc<Partition>>>,
    /// Files set aside, now or by an earlier start, until an operator removes them.
    damaged: RwLock<Vec<String>>,
}

/// Where damaged partitions are set aside.
const DAMAGED_FOLDER: &str = "damaged";

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
        let this = Self {
            granularities,
            layouts,
            medium,
            open: RwLock::default(),
            damaged: RwLock::default(),
        };
        *this.damaged.write() = this.list(DAMAGED_FOLDER)?;
        for (level, granularity) in this.granularities.levels().iter().enumerate() {
            let folder = format!("partitions/{}", granularity.name);
            for name in this.list(&folder)? {
                if name.ends_with(UNFINISHED) {
                    this.remove_unfinished(&format!("{folder}/{name}"))?;
                    continue;
                }
                let Some(start) = Partition::start_of_file(granularity, &name) else {
                    tracing::warn!(name, "passed over a file that is no partition");
                    continue;
                };
                this.get_or_create(PartitionId { level, start })?;
            }
        }
        Ok(this)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let fault = |cause| StoreError::Io { operation: "list", file: folder.to_owned(), cause };
        self.medium.list(folder).map_err(fault)
    }

    /// Removes a file whose making was cut short; nothing was ever in it.
    fn remove_unfinished(&self, file: &str) -> Result<(), StoreError> {
        let fault = |cause| StoreError::Io { operation: "remove", file: file.to_owned(), cause };
        self.medium.remove(file).map_err(fault)
    }

    /// Files that were set aside because they are damaged.
    pub(crate) fn damaged(&self) -> Vec<String> {
        self.damaged.read().clone()
    }

    /// Opens a partition; a damaged one is set aside and a new one begun in its place.
    fn open_or_set_aside(&self, id: PartitionId) -> Result<Partition, StoreError> {
        let granularity = &self.granularities.levels()[id.level];
        let open = || {
            let layouts = self.layouts[id.level].clone();
            Partition::open(&self.medium, id, granularity, layouts)
        };
        match open() {
            Err(fault) if fault.is_damage() => {
                self.set_aside(&Partition::file_name(granularity, id.start), &fault)?;
                open()
            }
            outcome => outcome,
        }
    }

    /// Moves a damaged file out of the way, and says so.
    pub(crate) fn set_aside(&self, file: &str, fault: &StoreError) -> Result<(), StoreError> {
        let name = set_aside_name(file);
        let cause: &dyn std::error::Error = fault;
        tracing::error!(
            file,
            set_aside = format!("{DAMAGED_FOLDER}/{name}"),
            cause,
            "a file is damaged: the samples in it are missing, in a partition only at its \
             granularity; restore it from a snapshot or remove it"
        );
        let fault = |cause| StoreError::Io { operation: "set aside", file: file.to_owned(), cause };
        self.medium.rename(file, &format!("{DAMAGED_FOLDER}/{name}")).map_err(fault)?;
        self.damaged.write().push(name);
        Ok(())
    }

    /// Sets a partition aside when an operation on it failed because it is damaged; returns
    /// whether there is a new one in its place. Whoever reads the old one finishes.
    pub(crate) fn replace_if_damaged(
        &self,
        partition: &Arc<Partition>,
        fault: &StoreError,
    ) -> Result<bool, StoreError> {
        if !fault.is_damage_of(partition.file_path()) {
            return Ok(false);
        }
        let mut open = self.open.write();
        let is_current =
            open.get(&partition.id).is_some_and(|current| Arc::ptr_eq(current, partition));
        if !is_current {
            return Ok(true);
        }
        self.set_aside(partition.file_path(), fault)?;
        let new = Arc::new(self.open_or_set_aside(partition.id)?);
        open.insert(partition.id, new);
        Ok(true)
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
        let partition = Arc::new(self.open_or_set_aside(id)?);
        open.insert(id, partition.clone());
        Ok(partition)
    }

    /// Changes a partition, created when it is not there. When it turns out to be damaged, it is
    /// set aside and the change is made to a new one.
    pub(crate) fn change<T>(
        &self,
        id: PartitionId,
        change: impl Fn(&Arc<Partition>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let partition = self.get_or_create(id)?;
        match change(&partition) {
            Err(fault) if self.replace_if_damaged(&partition, &fault)? => {
                change(&self.get_or_create(id)?)
            }
            outcome => outcome,
        }
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
            bytes: self.medium.allocated_bytes(partition.file_path()).unwrap_or(0),
            file: partition.file_path().to_owned(),
        };
        self.all().into_iter().map(describe).collect()
    }

    /// Takes a partition out of the map and removes its file. Readers that hold it finish.
    pub(crate) fn remove(&self, id: PartitionId) -> Result<bool, StoreError> {
        let Some(partition) = self.open.write().remove(&id) else { return Ok(false) };
        self.medium.remove(partition.file_path()).map_err(|cause| StoreError::Io {
            operation: "remove",
            file: partition.file_path().to_owned(),
            cause,
        })?;
        Ok(true)
    }
}
