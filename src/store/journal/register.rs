//! The register: the files with data that the journal lists, and the files that were lost.
//!
//! A file is created, then registered, then filled; it is removed from the register before it is
//! deleted. Therefore a registered file that is missing was lost, no matter when the process ended,
//! and an unregistered file contains nothing that was acknowledged. The register stores the end of
//! each partition, even of a lost one, because the settings may have changed by then. Must never
//! know: the content of the files.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};

use super::Journal;
use crate::{
    model::UnixMillis,
    store::{error::StoreError, file::medium::Medium},
};

/// The folder of damaged files, and of markers of missing files.
pub(crate) const DAMAGED_FOLDER: &str = "damaged";
/// The suffix of the name of a file; a number after it distinguishes several files.
const END: &str = ".redb";
/// The suffix of the name of a marker, which records that a file is missing.
pub(crate) const MISSING: &str = ".missing";
/// The suffix of the name of a segment, after its number and a dot.
const SEALED: &str = "sealed";
/// The prefix of the name of a set-aside file whose loss no longer counts.
const REBUILT: &str = "rebuilt-";

/// The registered files, and the files that were lost.
#[derive(Debug)]
pub(crate) struct Register {
    medium: Arc<dyn Medium>,
    journal: Arc<Journal>,
    known: Mutex<Known>,
    /// The names in the folder of damaged files, until an operator removes the files.
    damaged: RwLock<Vec<String>>,
}

/// The register's tables in the journal.
#[derive(Debug)]
struct Known {
    files: BTreeSet<String>,
    /// The ends of partitions by file, including lost ones.
    ends: BTreeMap<String, UnixMillis>,
}

impl Register {
    /// Reads the register, and reports missing files.
    pub(crate) fn open(medium: Arc<dyn Medium>, journal: Arc<Journal>) -> Result<Self, StoreError> {
        let mut damaged = medium.list(DAMAGED_FOLDER).map_err(fault("list", DAMAGED_FOLDER))?;
        damaged.retain(|name| !name.starts_with(REBUILT));
        let known = Mutex::new(Known { files: journal.files()?, ends: journal.ends()? });
        let this = Self { medium, journal, known, damaged: RwLock::new(damaged) };
        for file in missing(&this.medium, &this.journal)? {
            this.mark_missing(&file)?;
        }
        this.forget_ends()?;
        Ok(this)
    }

    /// Removes the ends of partitions that do not exist and were not lost.
    fn forget_ends(&self) -> Result<(), StoreError> {
        let mut known = self.known.lock();
        let mut gone = Vec::new();
        for file in known.ends.keys().filter(|file| !self.is_lost(file)) {
            // A file that is not registered may exist, and be set aside later.
            if !known.files.contains(file)
                && !self.medium.exists(file).map_err(fault("find", file))?
            {
                gone.push(file.clone());
            }
        }
        if !gone.is_empty() {
            let names: Vec<_> = gone.iter().map(String::as_str).collect();
            self.journal.forget_files(&[], &names)?;
            known.ends.retain(|file, _| !gone.contains(file));
        }
        Ok(())
    }

    /// Returns the journal, which also stores the ends of lost partitions.
    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Registers an existing file.
    pub(crate) fn note(&self, file: &str) -> Result<(), StoreError> {
        self.note_all(&[(file.to_owned(), None)])
    }

    /// Registers existing files of partitions, with the ends of the partitions.
    pub(crate) fn note_partitions(
        &self,
        files: impl IntoIterator<Item = (String, UnixMillis)>,
    ) -> Result<(), StoreError> {
        let files: Vec<_> = files.into_iter().map(|(file, end)| (file, Some(end))).collect();
        self.note_all(&files)
    }

    fn note_all(&self, files: &[(String, Option<UnixMillis>)]) -> Result<(), StoreError> {
        let mut known = self.known.lock();
        let is_new = |file: &&String| !known.files.contains(*file);
        let new: Vec<_> = files.iter().map(|(file, _)| file).filter(is_new).cloned().collect();
        let end = |(file, end): &(String, Option<UnixMillis>)| {
            let before = known.ends.get(file).copied();
            // A lost partition at this time may have been longer.
            let end = if self.is_lost(file) { (*end)?.max(before?) } else { (*end)? };
            (Some(end) != before).then(|| (file.clone(), end))
        };
        let ends: Vec<_> = files.iter().filter_map(end).collect();
        if !new.is_empty() || !ends.is_empty() {
            self.journal.note_files(&new, &ends)?;
            known.files.extend(new);
            known.ends.extend(ends);
        }
        Ok(())
    }

    /// Removes a file from the register before it is deleted.
    pub(crate) fn forget(&self, file: &str) -> Result<(), StoreError> {
        let mut known = self.known.lock();
        if known.files.contains(file) {
            // A partition that was lost at this time before remains a hole.
            let ends: &[_] = if self.is_lost(file) { &[] } else { &[file] };
            self.journal.forget_files(&[file], ends)?;
            known.files.remove(file);
            if !ends.is_empty() {
                known.ends.remove(file);
            }
        }
        Ok(())
    }

    /// Removes a lost file from the register; the end of its partition stays.
    fn forget_lost(&self, file: &str) -> Result<(), StoreError> {
        let mut known = self.known.lock();
        if known.files.contains(file) {
            self.journal.forget_files(&[file], &[])?;
            known.files.remove(file);
        }
        Ok(())
    }

    /// Returns the damaged files that were set aside, and the markers of missing files.
    pub(crate) fn damaged(&self) -> Vec<String> {
        self.damaged.read().clone()
    }

    /// Returns true when a file was set aside or missing once, so that cells may be missing in its
    /// range.
    pub(crate) fn is_lost(&self, file: &str) -> bool {
        let name = aside_name(file);
        let is_of = |rest: &str| rest.is_empty() || rest.starts_with('.');
        self.damaged.read().iter().any(|lost| lost.strip_prefix(&name).is_some_and(is_of))
    }

    /// Returns the names of lost partitions of a folder, each with its end, if the end is known.
    pub(crate) fn lost(&self, folder: &str) -> Vec<(String, Option<UnixMillis>)> {
        let prefix = aside_name(&format!("{folder}/"));
        let known = self.known.lock();
        let damaged = self.damaged.read();
        let names = damaged.iter().filter_map(|name| name.strip_prefix(&prefix));
        let files = names.filter_map(|name| Some(format!("{}{END}", name.split_once(END)?.0)));
        let with_end = |name: String| {
            let end = known.ends.get(&format!("{folder}/{name}")).copied();
            (name, end)
        };
        files.map(with_end).collect()
    }

    /// Writes markers of lost files into a copy of the store; returns their number.
    pub(crate) fn mark_lost_in(&self, copy: &Arc<dyn Medium>) -> Result<u64, StoreError> {
        let damaged = self.damaged();
        let stems = damaged.iter().filter_map(|name| Some(name.split_once(END)?.0));
        let stems: BTreeSet<_> = stems.collect();
        for stem in &stems {
            let mark = format!("{DAMAGED_FOLDER}/{stem}{END}{MISSING}");
            drop(copy.create(&mark).map_err(fault("create", &mark))?);
        }
        Ok(stems.len() as u64)
    }

    /// Sets a damaged file aside, and logs it.
    pub(crate) fn set_aside(&self, file: &str, fault_found: &StoreError) -> Result<(), StoreError> {
        if !self.medium.exists(file).map_err(fault("find", file))? {
            // The file was set aside before, and the creation of a new file failed.
            return Ok(());
        }
        let name = self.free_name(&aside_name(file))?;
        let cause: &dyn std::error::Error = fault_found;
        tracing::error!(
            file,
            set_aside = format!("{DAMAGED_FOLDER}/{name}"),
            cause,
            "a file is damaged and was set aside; samples of a partition are missing only at its \
             granularity; restore the file from a snapshot or remove it"
        );
        self.forget_lost(file)?;
        let to = format!("{DAMAGED_FOLDER}/{name}");
        self.medium.rename(file, &to).map_err(fault("set aside", file))?;
        self.damaged.write().push(name);
        Ok(())
    }

    /// Records that the loss of a partition no longer counts: its cells were computed again, or its
    /// missing times are holes of the new partition. Removes its markers, and renames set-aside
    /// files and segments, which an operator may still want.
    pub(crate) fn forget_loss(&self, file: &str) -> Result<(), StoreError> {
        let name = aside_name(file);
        let is_of = |rest: &str| rest.is_empty() || rest.starts_with('.');
        let mut damaged = self.damaged.write();
        let (lost, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *damaged).into_iter().partition(|other| {
                other.strip_prefix(&name).is_some_and(is_of) || is_segment_of(&name, other)
            });
        *damaged = kept;
        for other in lost {
            let path = format!("{DAMAGED_FOLDER}/{other}");
            if other.ends_with(MISSING) {
                self.medium.remove(&path).map_err(fault("remove", &path))?;
                continue;
            }
            let free = self.free_name(&format!("{REBUILT}{other}"))?;
            let to = format!("{DAMAGED_FOLDER}/{free}");
            self.medium.rename(&path, &to).map_err(fault("rename", &path))?;
        }
        Ok(())
    }

    /// Writes a marker of a missing file, and logs it.
    fn mark_missing(&self, file: &str) -> Result<(), StoreError> {
        let name = format!("{}{MISSING}", aside_name(file));
        let mark = format!("{DAMAGED_FOLDER}/{name}");
        tracing::error!(
            file,
            mark,
            "a file is missing; samples of a partition are missing only at its granularity; stop \
             the daemon and restore the file, or remove the marker"
        );
        if !self.damaged.read().contains(&name) {
            drop(self.medium.create(&mark).map_err(fault("create", &mark))?);
            self.medium.settle(&mark).map_err(fault("create", &mark))?;
            self.damaged.write().push(name);
        }
        self.forget_lost(file)
    }

    /// Returns the name; adds a number when another file has the name.
    fn free_name(&self, name: &str) -> Result<String, StoreError> {
        let mut free = name.to_owned();
        for number in 2_u32.. {
            let path = format!("{DAMAGED_FOLDER}/{free}");
            if !self.medium.exists(&path).map_err(fault("find", &path))? {
                break;
            }
            free = format!("{name}.{number}");
        }
        Ok(free)
    }
}

/// Returns the registered files that are missing.
pub(crate) fn missing(
    medium: &Arc<dyn Medium>,
    journal: &Journal,
) -> Result<Vec<String>, StoreError> {
    let mut missing = Vec::new();
    for file in journal.files()? {
        if !medium.exists(&file).map_err(fault("find", &file))? {
            missing.push(file);
        }
    }
    Ok(missing)
}

/// Returns true when a set-aside file was a segment of a set-aside partition.
fn is_segment_of(partition: &str, other: &str) -> bool {
    let stem = partition.strip_suffix(END).unwrap_or(partition);
    let rest = other.strip_prefix(stem).and_then(|rest| rest.strip_prefix('.'));
    let parts = rest.and_then(|rest| rest.split_once('.'));
    parts.is_some_and(|(number, end)| number.parse::<u32>().is_ok() && end.starts_with(SEALED))
}

/// Returns the name of a file after it is set aside.
pub(crate) fn aside_name(file: &str) -> String {
    file.trim_start_matches("partitions/").replace('/', "-")
}

fn fault<'a>(operation: &'static str, file: &'a str) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |cause| StoreError::Io { operation, file: file.to_owned(), cause }
}
