//! The disk behind the medium: the contents and names of files in the kernel's page cache and on
//! the platter, and what survives a power cut.
//!
//! The disk behaves as FORMAT.md assumes. After a sync returned, its data is durable. The file
//! system logs sizes and names. Of the changes of a folder since its last sync, the first ones
//! survive, independently of other folders. A file that was renamed from one folder to another is
//! in one of them. The contents of a folder are lost when the name of the folder did not survive. A
//! write survives or is torn at sectors. After a failed sync the kernel keeps the pages and marks
//! them clean: reads see them, later syncs do not write them, and only some of them reached the
//! platter. Writing a page again makes the whole page dirty.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use fastrand::Rng;

const PAGE: usize = 4096;
const SECTOR: usize = 512;

/// The contents of one file.
#[derive(Debug, Default, Clone)]
pub(super) struct FileImage {
    /// The content that reads see.
    cached: Vec<u8>,
    /// The content that certainly survives a power cut.
    stored: Vec<u8>,
    /// Pages written since the last sync, in order: each survives a power cut or not.
    dirty: Vec<(usize, Vec<u8>)>,
    /// True after a failed sync: `cached` may contain data that is neither stored nor dirty.
    is_lossy: bool,
}

impl FileImage {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self { cached: bytes.clone(), stored: bytes, ..Self::default() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.cached
    }

    pub(super) fn set_len(&mut self, len: usize) {
        self.cached.resize(len, 0);
        self.stored.resize(len, 0);
        for (from, bytes) in &mut self.dirty {
            bytes.truncate(len.saturating_sub(*from));
        }
        self.dirty.retain(|(_, bytes)| !bytes.is_empty());
    }

    pub(super) fn write(&mut self, from: usize, data: &[u8]) {
        if from + data.len() > self.cached.len() {
            self.set_len(from + data.len());
        }
        self.cached[from..from + data.len()].copy_from_slice(data);
        let first = from / PAGE * PAGE;
        let end = (from + data.len()).next_multiple_of(PAGE).min(self.cached.len());
        self.dirty.push((first, self.cached[first..end].to_vec()));
    }

    pub(super) fn sync(&mut self) {
        for (from, bytes) in self.dirty.drain(..) {
            self.stored[from..from + bytes.len()].copy_from_slice(&bytes);
        }
    }

    /// Fails a sync: the pages become clean although not all of them are stored.
    pub(super) fn fail_sync(&mut self, rng: &mut Rng) {
        self.is_lossy = true;
        self.store_partially(rng);
    }

    /// Stores each dirty page completely, in part, or not at all.
    fn store_partially(&mut self, rng: &mut Rng) {
        let survival = rng.f64();
        for (from, bytes) in std::mem::take(&mut self.dirty) {
            if rng.f64() > survival {
                continue;
            }
            for (index, sector) in bytes.chunks(SECTOR).enumerate() {
                if rng.f64() <= survival {
                    let at = from + index * SECTOR;
                    self.stored[at..at + sector.len()].copy_from_slice(sector);
                }
            }
        }
    }

    /// Evicts the clean pages, so that the next read gets them from the platter.
    pub(super) fn drop_cache(&mut self) {
        if std::mem::take(&mut self.is_lossy) {
            self.cached.clone_from(&self.stored);
            for (from, bytes) in &self.dirty {
                self.cached[*from..from + bytes.len()].copy_from_slice(bytes);
            }
        }
    }

    fn cut_power(&mut self, rng: &mut Rng) {
        self.store_partially(rng);
        self.cached.clone_from(&self.stored);
        self.is_lossy = false;
    }
}

/// A change of names in one or two folders; a sync of either makes it durable.
#[derive(Debug, Clone)]
enum NameChange {
    CreateFolder(String),
    Create(String, u64),
    Remove(String),
    Rename(String, String),
}

impl NameChange {
    /// Returns the folders whose names change.
    fn folders(&self) -> Vec<String> {
        let paths = match self {
            Self::CreateFolder(path) | Self::Create(path, _) | Self::Remove(path) => vec![path],
            Self::Rename(from, to) => vec![from, to],
        };
        paths.into_iter().map(|path| parent(path).to_owned()).collect()
    }
}

/// Returns the folder of a path; the medium's root is "".
pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the folders above a path, the nearest first.
pub(super) fn folders_above(path: &str) -> Vec<String> {
    let mut folders = vec![parent(path).to_owned()];
    while !folders[folders.len() - 1].is_empty() {
        folders.push(parent(&folders[folders.len() - 1]).to_owned());
    }
    folders
}

/// The names of files and folders, except the medium's root.
#[derive(Debug, Default, Clone)]
struct Names {
    files: BTreeMap<String, u64>,
    folders: BTreeSet<String>,
}

impl Names {
    fn apply(&mut self, change: &NameChange) {
        match change {
            NameChange::CreateFolder(name) => {
                self.folders.insert(name.clone());
            }
            NameChange::Create(name, inode) => {
                self.files.insert(name.clone(), *inode);
            }
            NameChange::Remove(name) => {
                self.files.remove(name);
            }
            NameChange::Rename(from, to) => {
                if let Some(inode) = self.files.remove(from) {
                    self.files.insert(to.clone(), inode);
                }
            }
        }
    }

    /// Removes the contents of folders that do not exist.
    fn remove_unreachable(&mut self) {
        let all = self.folders.clone();
        let is_reachable = |path: &str| {
            folders_above(path).iter().all(|folder| folder.is_empty() || all.contains(folder))
        };
        self.files.retain(|name, _| is_reachable(name));
        self.folders.retain(|name| is_reachable(name));
    }
}

/// All files, and their names.
#[derive(Debug, Default)]
pub(super) struct Disk {
    images: BTreeMap<u64, FileImage>,
    names: Names,
    durable: Names,
    /// Changes that are not durable yet, in order.
    changes: Vec<NameChange>,
}

impl Disk {
    pub(super) fn image(&mut self, inode: u64) -> &mut FileImage {
        self.images.get_mut(&inode).expect("open files exist")
    }

    pub(super) fn find(&self, name: &str) -> Option<u64> {
        self.names.files.get(name).copied()
    }

    pub(super) fn image_named(&self, name: &str) -> Option<&FileImage> {
        self.images.get(&self.find(name)?)
    }

    /// Returns the paths of all files.
    pub(super) fn all_files(&self) -> Vec<String> {
        self.names.files.keys().cloned().collect()
    }

    /// Returns the names of the files in a folder.
    pub(super) fn files_in(&self, folder: &str) -> Vec<String> {
        self.names.files.keys().filter_map(|path| name_in(folder, path)).collect()
    }

    /// Returns the names of the folders in a folder.
    pub(super) fn folders_in(&self, folder: &str) -> Vec<String> {
        self.names.folders.iter().filter_map(|path| name_in(folder, path)).collect()
    }

    /// Creates a durable file.
    pub(super) fn put(&mut self, name: &str, bytes: Vec<u8>) {
        let inode = self.create(name);
        self.images.insert(inode, FileImage::of(bytes));
        for folder in folders_above(name) {
            self.sync_folder(&folder);
        }
    }

    pub(super) fn create(&mut self, name: &str) -> u64 {
        let inode = self.images.len() as u64;
        self.images.insert(inode, FileImage::default());
        self.create_folders(name);
        self.change(NameChange::Create(name.to_owned(), inode));
        inode
    }

    /// Creates missing folders above a path.
    fn create_folders(&mut self, path: &str) {
        for folder in folders_above(path).into_iter().rev() {
            if !folder.is_empty() && !self.names.folders.contains(&folder) {
                self.change(NameChange::CreateFolder(folder));
            }
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        if self.find(name).is_some() {
            self.change(NameChange::Remove(name.to_owned()));
        }
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.find(from).ok_or(io::ErrorKind::NotFound)?;
        self.create_folders(to);
        self.change(NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn change(&mut self, change: NameChange) {
        self.names.apply(&change);
        self.changes.push(change);
    }

    /// Returns true if all names in a folder are durable.
    pub(super) fn has_settled(&self, folder: &str) -> bool {
        let is_in_folder =
            |change: &NameChange| change.folders().iter().any(|changed| changed == folder);
        !self.changes.iter().any(is_in_folder)
    }

    /// Makes the names in a folder durable, and earlier changes in each folder that exchanged a
    /// file with it since.
    pub(super) fn sync_folder(&mut self, folder: &str) {
        let mut synced = BTreeSet::from([folder.to_owned()]);
        let mut changes = std::mem::take(&mut self.changes);
        let (mut durable, mut rest) = (Vec::new(), Vec::new());
        while let Some(change) = changes.pop() {
            let folders = change.folders();
            if folders.iter().any(|folder| synced.contains(folder)) {
                synced.extend(folders);
                durable.push(change);
            } else {
                rest.push(change);
            }
        }
        for change in durable.iter().rev() {
            self.durable.apply(change);
        }
        self.changes = rest.into_iter().rev().collect();
    }

    /// Cuts the power: only durable data, and a random part of the rest, survives.
    pub(super) fn cut_power(&mut self, rng: &mut Rng) {
        let loss_share = rng.f64();
        let mut lost = BTreeSet::new();
        for change in std::mem::take(&mut self.changes) {
            let folders = change.folders();
            if folders.iter().any(|folder| lost.contains(folder)) || rng.f64() < loss_share {
                lost.extend(folders);
            } else {
                self.durable.apply(&change);
            }
        }
        self.durable.remove_unreachable();
        self.names.clone_from(&self.durable);
        for image in self.images.values_mut() {
            image.cut_power(rng);
        }
    }
}

/// Returns the name of a file directly in a folder.
fn name_in(folder: &str, path: &str) -> Option<String> {
    (parent(path) == folder).then(|| path.rsplit('/').next().unwrap_or(path).to_owned())
}
