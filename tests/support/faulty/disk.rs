//! The disk behind the medium: files as the kernel's page cache shows them and as they lie on the
//! platter, their names, and what a power cut leaves of both.
//!
//! Assumed, as FORMAT.md does: a sync that returned is durable; sizes and names are kept in the
//! file system's own log, so that of the changes since the last sync of a folder some first ones
//! survive; a write survives or is torn at sectors. After a sync that failed the kernel keeps the
//! pages and marks them clean: reads see them, no later sync writes them, and only some of them
//! reached the platter. Writing a page again makes it dirty again, as a whole.

use std::{collections::BTreeMap, io};

use fastrand::Rng;

const PAGE: usize = 4096;
const SECTOR: usize = 512;

/// One file.
#[derive(Debug, Default, Clone)]
pub(super) struct Image {
    /// What a read sees.
    cached: Vec<u8>,
    /// What survives a power cut for sure.
    stored: Vec<u8>,
    /// Pages written since the last sync, in order: each survives a power cut or not.
    dirty: Vec<(usize, Vec<u8>)>,
    /// A sync failed: `cached` may show what is neither stored nor dirty.
    is_lossy: bool,
}

impl Image {
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

    /// The sync fails: the pages are clean all the same.
    pub(super) fn fail_sync(&mut self, rng: &mut Rng) {
        self.is_lossy = true;
        self.store_some(rng);
    }

    /// Each dirty page reaches the platter, in part, or does not.
    fn store_some(&mut self, rng: &mut Rng) {
        let kept = rng.f64();
        for (from, bytes) in std::mem::take(&mut self.dirty) {
            if rng.f64() > kept {
                continue;
            }
            for (index, sector) in bytes.chunks(SECTOR).enumerate() {
                if rng.f64() <= kept {
                    let at = from + index * SECTOR;
                    self.stored[at..at + sector.len()].copy_from_slice(sector);
                }
            }
        }
    }

    /// Forgets the clean pages: the next read takes them from the platter.
    pub(super) fn drop_cache(&mut self) {
        if std::mem::take(&mut self.is_lossy) {
            self.cached.clone_from(&self.stored);
            for (from, bytes) in &self.dirty {
                self.cached[*from..from + bytes.len()].copy_from_slice(bytes);
            }
        }
    }

    fn cut_power(&mut self, rng: &mut Rng) {
        self.store_some(rng);
        self.cached.clone_from(&self.stored);
        self.is_lossy = false;
    }
}

/// A change of the names, which a sync of the folder makes durable.
#[derive(Debug, Clone)]
enum NameChange {
    Create(String, u64),
    Remove(String),
    Rename(String, String),
}

/// All files, and their names.
#[derive(Debug, Default)]
pub(super) struct Disk {
    images: BTreeMap<u64, Image>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    changes: Vec<NameChange>,
}

impl Disk {
    pub(super) fn image(&mut self, inode: u64) -> &mut Image {
        self.images.get_mut(&inode).expect("files that are open are there")
    }

    pub(super) fn find(&self, name: &str) -> Option<u64> {
        self.names.get(name).copied()
    }

    pub(super) fn named(&self, name: &str) -> Option<&Image> {
        self.images.get(self.names.get(name)?)
    }

    /// Names of what is in a folder, and in folders there, without the folder's own.
    pub(super) fn names_below(&self, folder: &str) -> impl Iterator<Item = &str> {
        self.names.keys().filter_map(move |name| name.strip_prefix(folder)?.strip_prefix('/'))
    }

    /// A file that is there for good.
    pub(super) fn put(&mut self, name: &str, bytes: Vec<u8>) {
        let inode = self.create(name);
        self.images.insert(inode, Image::of(bytes));
        self.sync_names();
    }

    pub(super) fn create(&mut self, name: &str) -> u64 {
        let inode = self.images.len() as u64;
        self.images.insert(inode, Image::default());
        self.change(NameChange::Create(name.to_owned(), inode));
        inode
    }

    pub(super) fn remove(&mut self, name: &str) {
        if self.find(name).is_some() {
            self.change(NameChange::Remove(name.to_owned()));
        }
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.find(from).ok_or(io::ErrorKind::NotFound)?;
        self.change(NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn change(&mut self, change: NameChange) {
        apply(&mut self.names, &change);
        self.changes.push(change);
    }

    /// Whether all names are durable.
    pub(super) fn has_settled(&self) -> bool {
        self.changes.is_empty()
    }

    pub(super) fn sync_names(&mut self) {
        for change in self.changes.drain(..) {
            apply(&mut self.durable_names, &change);
        }
    }

    /// What is found when the power comes back.
    pub(super) fn cut_power(&mut self, rng: &mut Rng) {
        let survive = rng.usize(0..=self.changes.len());
        for change in std::mem::take(&mut self.changes).iter().take(survive) {
            apply(&mut self.durable_names, change);
        }
        self.names.clone_from(&self.durable_names);
        for image in self.images.values_mut() {
            image.cut_power(rng);
        }
    }
}

fn apply(names: &mut BTreeMap<String, u64>, change: &NameChange) {
    match change {
        NameChange::Create(name, inode) => {
            names.insert(name.clone(), *inode);
        }
        NameChange::Remove(name) => {
            names.remove(name);
        }
        NameChange::Rename(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
    }
}
