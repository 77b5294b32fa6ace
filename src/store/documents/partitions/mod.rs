//! The open partitions, by granularity and start.
//!
//! Must never know: what is in documents.

mod orphans;
mod periods;
pub(crate) mod rooms;
pub(crate) mod view;

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, Weak, atomic::AtomicU32},
};

use parking_lot::{Mutex, MutexGuard, RwLock};

use super::{
    PartitionInfo,
    grid::PartitionGrid,
    partition::{Partition, Removal, segments::Numbers},
    segment::cache::SealedCache,
};
use crate::{
    model::{Granularity, GranularityIndex, PartitionId, UnixMillis},
    store::{
        error::StoreError,
        file::{
            database::UNFINISHED,
            medium::Medium,
            names::{
                folders_without_partitions, partition_file, partition_folder, partition_of_segment,
                partition_start,
            },
        },
        journal::register::Register,
    },
};

/// All open partitions, and the creation of new partitions.
#[derive(Debug)]
pub(super) struct Partitions {
    /// The granularities of the settings, then the retired granularities.
    granularities: Vec<Granularity>,
    pub(super) medium: Arc<dyn Medium>,
    pub(super) register: Arc<Register>,
    /// Partitions by granularity and start; none overlap.
    pub(super) open: RwLock<BTreeMap<PartitionId, Arc<Partition>>>,
    /// Held while files are created, set aside or removed. `open` is not held at the same time, so
    /// that a look-up never waits for the disk.
    changing: Mutex<()>,
    /// Removed partitions to which a thread may still write segments.
    gone: Mutex<Vec<Weak<Partition>>>,
    /// The heads of tiles and columns that views decoded recently.
    pub(super) cache: Arc<SealedCache>,
}

impl Partitions {
    /// Opens every partition of the medium.
    pub(super) fn open(
        medium: Arc<dyn Medium>,
        granularities: Vec<Granularity>,
        register: Arc<Register>,
    ) -> Result<Self, StoreError> {
        let (open, changing, gone) = Default::default();
        let cache = Arc::new(SealedCache::new());
        let this = Self { granularities, medium, register, open, changing, gone, cache };
        let mut files = Vec::new();
        for (index, granularity) in this.granularities.iter().enumerate() {
            let folder = partition_folder(granularity);
            for name in this.list(&folder)? {
                if name.ends_with(UNFINISHED) {
                    this.remove_unfinished(&format!("{folder}/{name}"))?;
                    continue;
                }
                let file = format!("{folder}/{name}");
                if partition_of_segment(&name).is_some() {
                    continue;
                }
                let Some(start) = partition_start(&name) else {
                    tracing::warn!(file, "skipped a file that is not a partition");
                    continue;
                };
                let id = PartitionId { granularity: GranularityIndex(index), start };
                if let Some(partition) = this.open_or_set_aside(id, &file)? {
                    files.push((file, partition.grid.end));
                    this.open.write().insert(id, Arc::new(partition));
                }
            }
            this.remove_orphans(&folder)?;
        }
        // Segments may also remain in folders of former granularities, which were not opened above.
        for folder in folders_without_partitions(&this.medium)? {
            this.remove_orphans(&folder)?;
        }
        this.register.note_partitions(files)?;
        Ok(this)
    }

    pub(super) fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let fault = |cause| StoreError::Io { operation: "list", file: folder.to_owned(), cause };
        self.medium.list(folder).map_err(fault)
    }

    /// Returns the times of a granularity that are missing, because files were lost or documents
    /// are damaged.
    pub(super) fn holes(&self, index: GranularityIndex) -> Vec<Range<UnixMillis>> {
        let granularity = self.granularity(index);
        let lost = self.register.lost(&partition_folder(granularity)).into_iter();
        // When the row with the end of a partition is damaged, the settings determine the end.
        let presumed = |start| granularity.partition_end(granularity.partition_start(start));
        let hole = |(name, end): (String, Option<UnixMillis>)| {
            let start = partition_start(&name)?;
            Some(start..end.unwrap_or_else(|| presumed(start)))
        };
        let mut holes: Vec<_> = lost.filter_map(hole).collect();
        for partition in self.overlapping(index, i64::MIN..i64::MAX) {
            let documents = partition.damaged_documents().into_iter();
            holes.extend(documents.map(|start| start..partition.grid.next_document(start)));
            holes.extend(partition.segments.lost());
            holes.extend_from_slice(partition.damage.holes().stretches());
        }
        holes
    }

    /// Opens an existing partition; a damaged one is set aside.
    fn open_or_set_aside(
        &self,
        id: PartitionId,
        file: &str,
    ) -> Result<Option<Partition>, StoreError> {
        let granularity = self.granularity(id.granularity);
        let numbers = self.numbers(id);
        let opened = Partition::open(&self.medium, id, granularity, file.to_owned(), numbers);
        let opened = opened.and_then(|partition| {
            match self.overlapping(id.granularity, partition.grid.range()).first() {
                None => Ok(partition),
                Some(other) => {
                    let problem = format!("it overlaps {}", other.file_path());
                    Err(StoreError::Corrupt { file: file.to_owned(), problem })
                }
            }
        });
        match opened {
            Err(fault) if fault.is_damage() => {
                self.set_aside(file, &fault)?;
                Ok(None)
            }
            outcome => outcome.map(Some),
        }
    }

    /// Sets a partition aside when an operation failed because it is damaged, and creates a new one
    /// in its place. Returns false when the fault is not damage of the partition and the partition
    /// is not being removed. Current readers of the old partition can finish.
    pub(super) fn replace_if_damaged(
        &self,
        partition: &Arc<Partition>,
        fault: &StoreError,
    ) -> Result<bool, StoreError> {
        let is_damaged = fault.is_damage_of(partition.file_path());
        // The file of a partition that is being removed may already be unlinked.
        if !is_damaged && !partition.is_being_removed() {
            return Ok(false);
        }
        let _one_at_a_time = self.changing.lock();
        let current = self.get(partition.id());
        if !current.is_some_and(|current| Arc::ptr_eq(&current, partition)) {
            return Ok(true);
        }
        let removal = *partition.removal.lock().get_or_insert(Removal::SetAside);
        self.take_away(partition, removal, fault)?;
        if removal == Removal::SetAside {
            self.add(partition.grid.clone())?;
        }
        Ok(true)
    }

    /// Removes the files of a partition that is being removed, or sets them aside, and then removes
    /// the partition.
    fn take_away(
        &self,
        partition: &Arc<Partition>,
        removal: Removal,
        fault_found: &StoreError,
    ) -> Result<(), StoreError> {
        let file = partition.file_path();
        match removal {
            Removal::SetAside => self.set_aside(file, fault_found)?,
            Removal::Dropped => {
                self.register.forget(file)?;
                let fault =
                    |cause| StoreError::Io { operation: "remove", file: file.to_owned(), cause };
                self.medium.remove(file).map_err(fault)?;
            }
        }
        self.open.write().remove(&partition.id());
        let mut gone = self.gone.lock();
        gone.retain(|partition| partition.strong_count() > 0);
        gone.push(Arc::downgrade(partition));
        drop(gone);
        if removal == Removal::Dropped
            && let Err(cause) = partition.segments.remove_files()
        {
            let cause: &dyn std::error::Error = &cause;
            tracing::warn!(
                file,
                cause,
                "cannot remove a dropped partition's segments; the next start removes them"
            );
        }
        Ok(())
    }

    /// Returns the counter of a partition's segment numbers, which a removed partition with this ID
    /// shares.
    fn numbers(&self, id: PartitionId) -> Numbers {
        let gone = self.gone.lock();
        let before =
            gone.iter().rev().filter_map(Weak::upgrade).find(|partition| partition.id() == id);
        before.map_or_else(
            || Arc::new(AtomicU32::new(1)),
            |partition| partition.segments.numbers().clone(),
        )
    }

    /// Prevents partitions from being created, set aside or removed while the guard is held.
    pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
        self.changing.lock()
    }

    /// Replaces the partition if the result is an error that is caused by damage, so that the next
    /// attempt uses a new partition.
    pub(super) fn or_replace<T>(
        &self,
        partition: &Arc<Partition>,
        outcome: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Err(fault) = &outcome {
            self.replace_if_damaged(partition, fault)?;
        }
        outcome
    }

    /// Returns all granularities: first the granularities of the settings, then the retired
    /// granularities.
    pub(super) fn granularities(&self) -> &[Granularity] {
        &self.granularities
    }

    /// Returns a granularity by its index.
    pub(super) fn granularity(&self, index: GranularityIndex) -> &Granularity {
        &self.granularities[index.0]
    }

    /// Returns the partition with an ID.
    pub(super) fn get(&self, id: PartitionId) -> Option<Arc<Partition>> {
        self.open.read().get(&id).cloned()
    }

    /// Returns the partition that contains a time, if it exists.
    pub(super) fn holding(
        &self,
        index: GranularityIndex,
        at: UnixMillis,
    ) -> Option<Arc<Partition>> {
        self.overlapping(index, at.0..at.0 + 1).pop()
    }

    /// Returns the grid of the partition that contains a time, or would contain it if it existed.
    pub(super) fn grid(&self, index: GranularityIndex, at: UnixMillis) -> PartitionGrid {
        let open = self.open.read();
        let id = PartitionId { granularity: index, start: at };
        let of_level = |(id, partition): (&PartitionId, &Arc<Partition>)| {
            (id.granularity == index).then(|| partition.grid.clone())
        };
        let before = open.range(..=id).next_back().and_then(of_level);
        let after = open.range(id..).find(|(other, _)| **other > id).and_then(of_level);
        match before {
            Some(holder) if at < holder.end => holder,
            before => {
                let granularity = self.granularity(index);
                PartitionGrid::between(granularity, index, at, before.as_ref(), after.as_ref())
            }
        }
    }

    /// Returns the partition that contains a time; creates a missing partition. If the partition is
    /// being removed, its removal is completed first, because its file may be unlinked although the
    /// removal failed.
    pub(super) fn get_or_create(
        &self,
        index: GranularityIndex,
        at: UnixMillis,
    ) -> Result<Arc<Partition>, StoreError> {
        let holding = || self.holding(index, at).filter(|partition| !partition.is_being_removed());
        if let Some(partition) = holding() {
            return Ok(partition);
        }
        let _one_at_a_time = self.changing.lock();
        if let Some(partition) = self.holding(index, at) {
            let Some(removal) = *partition.removal.lock() else { return Ok(partition) };
            self.take_away(&partition, removal, &found_before(&partition))?;
        }
        self.add(self.grid(index, at))
    }

    /// Creates a partition, or opens a partition whose creation was interrupted, and registers it
    /// before it contains data.
    fn add(&self, grid: PartitionGrid) -> Result<Arc<Partition>, StoreError> {
        let granularity = self.granularity(grid.id.granularity);
        let file = partition_file(granularity, grid.range());
        let fault = |cause| StoreError::Io { operation: "look for", file: file.clone(), cause };
        let found = if self.medium.exists(&file).map_err(fault)? {
            self.open_or_set_aside(grid.id, &file)?
        } else {
            None
        };
        let made = || {
            // Remaining segments belong to a dropped or lost partition, not to the new partition.
            self.remove_orphans(&partition_folder(granularity))?;
            let problem = "its partition was lost".to_owned();
            self.set_aside(&file, &StoreError::Corrupt { file: file.clone(), problem })?;
            let numbers = self.numbers(grid.id);
            Partition::create(&self.medium, granularity, grid, numbers)
        };
        let partition = Arc::new(found.map_or_else(made, Ok)?);
        self.register.note_partitions([(file, partition.grid.end)])?;
        self.open.write().insert(partition.id(), partition.clone());
        Ok(partition)
    }

    /// Returns the partitions of a granularity that overlap the range, ascending.
    pub(super) fn overlapping(
        &self,
        index: GranularityIndex,
        range: Range<i64>,
    ) -> Vec<Arc<Partition>> {
        let open = self.open.read();
        let first = PartitionId { granularity: index, start: UnixMillis(i64::MIN) };
        let last = PartitionId { granularity: index, start: UnixMillis(range.end - 1) };
        let overlaps = |partition: &&Arc<Partition>| partition.grid.end.0 > range.start;
        open.range(first..=last).map(|(_, partition)| partition).filter(overlaps).cloned().collect()
    }

    /// Returns all partitions.
    pub(super) fn all(&self) -> Vec<Arc<Partition>> {
        self.open.read().values().cloned().collect()
    }

    /// Returns all partitions with their sizes.
    pub(super) fn infos(&self) -> Vec<PartitionInfo> {
        let describe = |partition: Arc<Partition>| PartitionInfo {
            id: partition.id(),
            end: partition.grid.end,
            bytes: self.bytes(&partition),
            file: partition.file_path().to_owned(),
        };
        self.all().into_iter().map(describe).collect()
    }

    /// Returns the total size of a partition's files in bytes.
    fn bytes(&self, partition: &Partition) -> u64 {
        let segments = partition.segments.files();
        let names = segments.iter().map(|segment| segment.name());
        let files = std::iter::once(partition.file_path()).chain(names);
        files.map(|file| self.medium.allocated_bytes(file).unwrap_or(0)).sum()
    }

    /// Removes a partition and its files. Current readers can finish. After a failure, the
    /// partition still exists, and the removal can be repeated. The next start removes segments
    /// without a partition.
    pub(super) fn remove(&self, id: PartitionId) -> Result<bool, StoreError> {
        let _one_at_a_time = self.changing.lock();
        let Some(partition) = self.get(id) else { return Ok(false) };
        let removal = *partition.removal.lock().get_or_insert(Removal::Dropped);
        self.take_away(&partition, removal, &found_before(&partition))?;
        Ok(true)
    }
}

/// Returns the error for a damaged partition that an earlier attempt could not set aside.
fn found_before(partition: &Partition) -> StoreError {
    let problem = "the damage was found earlier, but the file could not be set aside".to_owned();
    StoreError::Corrupt { file: partition.file_path().to_owned(), problem }
}
