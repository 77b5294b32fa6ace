//! The copies of partitions, of their segments, and of the audit.
//!
//! Must never know: when checkpoints pause.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
    sync::Arc,
};

use super::unfinished::fault;
use crate::{
    model::PartitionId,
    store::{
        documents::{partition::Partition, segment::file::Segment},
        error::StoreError,
        file::durable::create_folders,
        handle::Store,
    },
};

/// The way in which segments, which never change, become part of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Segments {
    /// Segments are files of the copy.
    Copied,
    /// Segments are links to files of the store, where the file system has links.
    Linked,
}

/// Copies the files of the audit. Returns their number and their size in bytes.
pub(super) fn copy_audit(
    store: &Store,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(u64, u64), StoreError> {
    let (mut files, mut bytes) = (0, 0);
    store.inner.audit.copy_each(|name| {
        progress(name);
        let to = folder.join(name);
        if let Some(parent) = to.parent() {
            create_folders(parent).map_err(fault("create", parent))?;
        }
        bytes += store.inner.medium.copy(name, &to).map_err(fault("copy", &to))?;
        files += 1;
        Ok(())
    })?;
    Ok((files, bytes))
}

/// The copies of partitions and their segments.
pub(super) struct Copies<'a> {
    store: &'a Store,
    folder: &'a Path,
    kind: Segments,
    stops: &'a dyn Fn() -> bool,
    made: BTreeMap<PartitionId, CopiedPartition>,
    /// The copied segments by name, with their sizes in bytes. Segments never change, but when a
    /// partition replaces another partition, its segments may have the same names.
    segments: BTreeMap<String, (Arc<Segment>, u64)>,
}

/// The copy of the file of a partition.
struct CopiedPartition {
    partition: Arc<Partition>,
    /// The stamp of the partition before and after the copy; `None` when the partition changed
    /// during the copy, which is then useless.
    stamp: Option<u64>,
    bytes: u64,
}

impl<'a> Copies<'a> {
    /// Begins the copies in a folder.
    pub(super) fn new(
        store: &'a Store,
        folder: &'a Path,
        kind: Segments,
        stops: &'a dyn Fn() -> bool,
    ) -> Self {
        let (made, segments) = (BTreeMap::new(), BTreeMap::new());
        Self { store, folder, kind, stops, made, segments }
    }

    /// Copies the partitions that have changed since they were copied. When the store is `held`,
    /// only added shells could change a partition, and these wait for the copy; no partition is
    /// created or removed.
    pub(super) fn copy_changed(
        &mut self,
        held: bool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), StoreError> {
        let inner = &self.store.inner;
        for partition in inner.documents.files() {
            if (self.stops)() {
                return Err(fault("copy", self.folder)(io::ErrorKind::Interrupted.into()));
            }
            self.copy_segments(&partition, held, progress)?;
            let stamp = partition.file.stamp();
            let is_same = |made: &CopiedPartition| {
                Arc::ptr_eq(&made.partition, &partition)
                    && made.stamp.is_some()
                    && made.stamp == stamp
            };
            if self.made.get(&partition.id()).is_some_and(is_same) {
                continue;
            }
            let name = partition.file_path();
            progress(name);
            let to = self.folder.join(name);
            if let Some(parent) = to.parent() {
                create_folders(parent).map_err(fault("create", parent))?;
            }
            if self.made.remove(&partition.id()).is_some() {
                fs::remove_file(&to).map_err(fault("remove", &to))?;
            }
            let copy = || inner.medium.copy(name, &to);
            let copied = if held { partition.file.while_unwritten(copy)? } else { copy() };
            match copied {
                Ok(bytes) => {
                    let stamp =
                        stamp.filter(|copied| held || partition.file.stamp() == Some(*copied));
                    let copied = CopiedPartition { partition: partition.clone(), stamp, bytes };
                    self.made.insert(partition.id(), copied);
                }
                // Retention has dropped the partition in the meantime.
                Err(cause) if cause.kind() == io::ErrorKind::NotFound && !held => {}
                Err(cause) => return Err(fault("copy", &to)(cause)),
            }
        }
        Ok(())
    }

    /// Copies the segments of a partition that are not yet copied.
    fn copy_segments(
        &mut self,
        partition: &Partition,
        held: bool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), StoreError> {
        for segment in partition.segment_files() {
            let name = segment.name();
            let to = self.folder.join(name);
            match self.segments.remove(name) {
                Some((copied, bytes)) if Arc::ptr_eq(&copied, &segment) => {
                    self.segments.insert(name.to_owned(), (copied, bytes));
                    continue;
                }
                Some(_) => fs::remove_file(&to).map_err(fault("remove", &to))?,
                None => {}
            }
            progress(name);
            if let Some(parent) = to.parent() {
                create_folders(parent).map_err(fault("create", parent))?;
            }
            let medium = &self.store.inner.medium;
            let copied = match self.kind {
                Segments::Copied => medium.copy(name, &to),
                Segments::Linked => medium.link(name, &to),
            };
            match copied {
                Ok(bytes) => {
                    self.segments.insert(name.to_owned(), (segment, bytes));
                }
                // Another segment has replaced it in the meantime.
                Err(cause) if cause.kind() == io::ErrorKind::NotFound && !held => {}
                Err(cause) => return Err(fault("copy", &to)(cause)),
            }
        }
        Ok(())
    }

    /// Removes the copies of partitions and segments that no longer exist. Returns the names of the
    /// remaining partitions, the number of the remaining segments, and the total size in bytes.
    pub(super) fn finish(self) -> Result<(Vec<String>, u64, u64), StoreError> {
        let (mut files, mut segments, mut bytes) = (Vec::new(), 0, 0);
        let partitions = self.store.inner.documents.files();
        let named: Vec<_> =
            partitions.iter().flat_map(|partition| partition.segment_files()).collect();
        let mut existing: BTreeSet<_> = named.iter().map(|segment| segment.name()).collect();
        existing.extend(partitions.iter().map(|partition| partition.file_path()));
        let remove = |name: &str| {
            let copy = self.folder.join(name);
            fs::remove_file(&copy).map_err(fault("remove", &copy))
        };
        for copied in self.made.values() {
            let name = copied.partition.file_path();
            if existing.contains(name) {
                files.push(name.to_owned());
                bytes += copied.bytes;
            } else {
                remove(name)?;
            }
        }
        for (name, (_, copied)) in &self.segments {
            if existing.contains(&**name) {
                segments += 1;
                bytes += copied;
            } else {
                remove(name)?;
            }
        }
        Ok((files, segments, bytes))
    }
}
