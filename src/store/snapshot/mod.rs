//! Snapshots of a running store, and their restoration.
//!
//! A snapshot is a complete data directory. The head and partitions change only in checkpoints, by
//! sealing, and when shells are added. First, the partitions are copied while checkpoints continue.
//! Then checkpoints pause, and the head, the objects, and the partitions that have changed are
//! copied, while batches are accepted as usual. The journal is copied last, with the files of its
//! log and a view of its tables, so that it contains every record and series to which the
//! partitions refer.
//!
//! Must never know: when a snapshot is due, which snapshots expire.

pub(crate) mod folder;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Serialize;

use super::{
    documents::{partition::Partition, segment::file::Segment},
    error::StoreError,
    file::{
        durable::{copy_file, create_folders, settle_above},
        folder::Folder,
        medium::Medium,
        names::{HEAD_FILE, JOURNAL_FILE, OBJECTS_FILE},
    },
    handle::Store,
};
use crate::model::{Moment, PartitionId};

/// The number of passes over changed partitions before checkpoints pause.
const PASSES: usize = 2;
/// The end of the name of an unfinished folder.
pub(super) const UNFINISHED: &str = ".partial";

/// The files of a snapshot or a restored directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotReport {
    /// The folder.
    pub path: PathBuf,
    /// The number of files in the folder.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

impl Store {
    /// Copies a consistent state of the store into a folder, which must be empty or missing.
    ///
    /// # Errors
    /// When the folder is not empty or cannot be written; the copied files are then removed.
    pub fn snapshot(
        &self,
        target: &Path,
        now: impl Into<Moment>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<SnapshotReport, StoreError> {
        self.copy_files(target, now.into(), (Segments::Copied, &|| false), progress)
    }

    /// Copies a consistent state; see [`Self::snapshot`]. Copies with linked segments need little
    /// space, and have no audit. The copy ends with an error when `stops` returns true.
    pub(crate) fn copy_files(
        &self,
        target: &Path,
        now: Moment,
        (kind, stops): (Segments, &dyn Fn() -> bool),
        progress: &mut dyn FnMut(&str),
    ) -> Result<SnapshotReport, StoreError> {
        make_folder(target, |folder| {
            let (made, segments) = (BTreeMap::new(), BTreeMap::new());
            let mut copies = Copies { store: self, folder, kind, stops, made, segments };
            for _ in 0..PASSES {
                copies.copy_changed(false, progress)?;
            }
            // The journal's records up to this checkpoint need not be copied.
            self.checkpoint(now)?;
            // The lock of sealing is taken first: waiting for it may take long, and checkpoints
            // continue in the meantime.
            let _no_sealing = self.inner.sealing.lock();
            let _no_checkpoint = self.inner.checkpointing.lock();
            let (mut files, segments, mut bytes) = {
                // Retention and the creation of partitions also wait, so that every copied
                // partition has its segments.
                let _no_created_or_removed = self.inner.documents.hold();
                copies.copy_changed(true, progress)?;
                copies.finish()?
            };
            progress(HEAD_FILE);
            let to = folder.join(HEAD_FILE);
            let copy = || self.inner.medium.copy(HEAD_FILE, &to);
            bytes += self.inner.head.while_unwritten(copy)?.map_err(fault("copy", &to))?;
            files.push(HEAD_FILE.to_owned());
            let to = folder.join(OBJECTS_FILE);
            if let Some(copied) =
                self.inner.objects.copy(|| self.inner.medium.copy(OBJECTS_FILE, &to))?
            {
                progress(OBJECTS_FILE);
                bytes += copied.map_err(fault("copy", &to))?;
                files.push(OBJECTS_FILE.to_owned());
            }
            let (audit, audit_bytes) = match kind {
                Segments::Copied => copy_audit(self, folder, progress)?,
                Segments::Linked => (0, 0),
            };
            bytes += audit_bytes;
            progress(JOURNAL_FILE);
            let medium: Arc<dyn Medium> = Arc::new(Folder::at(folder));
            let (logs, log_bytes) = self.inner.journal.copy_to(&medium, folder, &files)?;
            bytes += medium.allocated_bytes(JOURNAL_FILE).unwrap_or(0) + log_bytes;
            let marks = self.inner.register.mark_lost_in(&medium)?;
            let files = files.len() as u64 + segments + marks + logs + audit + 1;
            Ok(SnapshotReport { path: target.to_owned(), files, bytes })
        })
    }
}

/// The way in which segments, which never change, become part of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Segments {
    /// Segments are files of the copy.
    Copied,
    /// Segments are links to files of the store, where the file system has links.
    Linked,
}

/// Copies the files of the audit. Returns their number and their size in bytes.
fn copy_audit(
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
struct Copies<'a> {
    store: &'a Store,
    folder: &'a Path,
    kind: Segments,
    stops: &'a dyn Fn() -> bool,
    made: BTreeMap<PartitionId, CopiedPartition>,
    /// The copied segments by name, with their sizes in bytes. Segments never change, but when a
    /// partition replaces another partition, its segments may have the same names.
    segments: BTreeMap<String, (Arc<Segment>, u64)>,
}

struct CopiedPartition {
    partition: Arc<Partition>,
    /// The stamp of the partition before and after the copy; `None` when the partition changed
    /// during the copy, which is then useless.
    stamp: Option<u64>,
    bytes: u64,
}

impl Copies<'_> {
    /// Copies the partitions that have changed since they were copied. When the store is `held`,
    /// only added shells could change a partition, and these wait for the copy; no partition is
    /// created or removed.
    fn copy_changed(
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
    fn finish(self) -> Result<(Vec<String>, u64, u64), StoreError> {
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

/// Creates a data directory from a snapshot. The folder must be empty or missing.
///
/// # Errors
/// When the snapshot cannot be read, or the folder is not empty or cannot be written.
pub fn restore(
    snapshot: &Path,
    target: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<SnapshotReport, StoreError> {
    make_folder(target, |folder| {
        let mut report = SnapshotReport { path: target.to_owned(), files: 0, bytes: 0 };
        copy_folder(snapshot, folder, &mut report, progress)?;
        Ok(report)
    })
}

fn copy_folder(
    from: &Path,
    to: &Path,
    report: &mut SnapshotReport,
    progress: &mut dyn FnMut(&str),
) -> Result<(), StoreError> {
    let mut entries = fs::read_dir(from)
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map_err(fault("list", from))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (source, copy) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(fault("read the type of", &source))?;
        if !kind.is_dir() && !kind.is_file() {
            let problem =
                "it is neither a file nor a folder: this is not a snapshot of granary".to_owned();
            return Err(StoreError::Mismatch { file: source.display().to_string(), problem });
        }
        if kind.is_dir() {
            create_folders(&copy).map_err(fault("create", &copy))?;
            copy_folder(&source, &copy, report, progress)?;
            continue;
        }
        progress(&source.strip_prefix(from).unwrap_or(&source).to_string_lossy());
        report.bytes += copy_file(&source, &copy).map_err(fault("copy", &source))?;
        report.files += 1;
    }
    Ok(())
}

/// Makes the names in a folder, and in the folders below, durable.
pub(crate) fn sync_folders(folder: &Path) -> Result<(), StoreError> {
    for entry in fs::read_dir(folder).map_err(fault("list", folder))? {
        let path = entry.map_err(fault("list", folder))?.path();
        if path.is_dir() {
            sync_folders(&path)?;
        }
    }
    sync(folder)
}

pub(crate) fn sync(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(fault("sync", path))
}

/// Fills a folder under a temporary name, and renames it when its content is durable.
fn make_folder(
    target: &Path,
    fill: impl FnOnce(&Path) -> Result<SnapshotReport, StoreError>,
) -> Result<SnapshotReport, StoreError> {
    // Without a slash at the end, so that the temporary name is beside the target.
    let target: &Path = &target.components().collect::<PathBuf>();
    let occupied = fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some());
    if occupied {
        return Err(StoreError::Mismatch {
            file: target.display().to_string(),
            problem: "the folder is not empty: use another one".to_owned(),
        });
    }
    let mut unfinished = target.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = PathBuf::from(unfinished);
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(fault("remove", &unfinished))?;
    }
    create_folders(&unfinished).map_err(fault("create", &unfinished))?;
    settle_above(&unfinished).map_err(fault("sync the folders above", &unfinished))?;
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new("."));
    let filled = fill(&unfinished).and_then(|report| {
        sync_folders(&unfinished)?;
        fs::rename(&unfinished, target).map_err(fault("rename", &unfinished))?;
        sync(parent)?;
        Ok(report)
    });
    if filled.is_err()
        && let Err(cause) = fs::remove_dir_all(&unfinished)
    {
        tracing::warn!(folder = %unfinished.display(), %cause, "cannot remove an unfinished copy");
    }
    filled
}

pub(crate) fn fault<'a>(
    operation: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |cause| StoreError::Io { operation, file: path.display().to_string(), cause }
}
