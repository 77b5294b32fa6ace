//! A medium in memory that fails on purpose: it cuts the power at the Nth sync, tears the writes
//! that were not synced, and answers ENOSPC or EIO; then the surviving image is opened again.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
};

use granary::store::Medium;
use redb::StorageBackend;

/// What fails, and when. Counted over all files of the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// From the Nth sync on nothing reaches the medium, until it is powered up again.
    PowerCut {
        /// Syncs that still succeed.
        after_syncs: u64,
    },
    /// From the Nth write on writes fail, until the fault is lifted.
    Writes {
        /// Writes that still succeed.
        after_writes: u64,
        /// The system's error number: ENOSPC or EIO.
        errno: i32,
    },
}

/// No space left on device (Linux).
pub(crate) const ENOSPC: i32 = 28;
/// Input/output error (Linux).
pub(crate) const EIO: i32 = 5;

#[derive(Debug, Default, Clone)]
struct FileImage {
    /// What a read sees.
    live: Vec<u8>,
    /// What survives a power cut for sure.
    synced: Vec<u8>,
    /// Writes since the last sync: each survives a power cut or not.
    pending: Vec<(usize, Vec<u8>)>,
}

#[derive(Debug, Default)]
struct Disk {
    files: BTreeMap<String, FileImage>,
    fault: Option<Fault>,
    writes: u64,
    syncs: u64,
    /// Files opened before the last power cut may no longer write.
    generation: u64,
    dead: bool,
}

/// See the module. Clones share the medium.
#[derive(Debug, Clone, Default)]
pub(crate) struct FaultyMedium(Arc<Mutex<Disk>>);

impl FaultyMedium {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap()
    }

    /// Arms a fault; its counts begin now.
    pub(crate) fn arm(&self, fault: Fault) {
        let mut disk = self.disk();
        (disk.fault, disk.writes, disk.syncs) = (Some(fault), 0, 0);
    }

    /// Lifts the fault: space came back, the cable is in again.
    pub(crate) fn lift(&self) {
        self.disk().fault = None;
    }

    /// Whether a fault is armed.
    pub(crate) fn has_fault(&self) -> bool {
        self.disk().fault.is_some()
    }

    fn file(&self, name: &str, generation: u64) -> Box<dyn StorageBackend> {
        Box::new(FaultyFile { medium: self.clone(), name: name.to_owned(), generation })
    }

    /// Whether the power was cut.
    pub(crate) fn is_dead(&self) -> bool {
        self.disk().dead
    }

    /// The medium as it is found when the power comes back: what was synced, and of the writes
    /// since then those that `survives` picks.
    pub(crate) fn power_up(&self, mut survives: impl FnMut() -> bool) {
        let mut disk = self.disk();
        disk.generation += 1;
        (disk.dead, disk.fault) = (false, None);
        for file in disk.files.values_mut() {
            let mut image = std::mem::take(&mut file.synced);
            for (offset, bytes) in std::mem::take(&mut file.pending) {
                if survives() {
                    // A torn write: 512 byte sectors survive one by one.
                    for (index, sector) in bytes.chunks(512).enumerate() {
                        let at = offset + index * 512;
                        if survives() && at + sector.len() <= image.len() {
                            image[at..at + sector.len()].copy_from_slice(sector);
                        }
                    }
                }
            }
            file.live.clone_from(&image);
            file.synced = image;
        }
        // A file that was never synced has no content to speak of.
        disk.files.retain(|_, file| !file.synced.is_empty());
    }
}

#[derive(Debug)]
struct FaultyFile {
    medium: FaultyMedium,
    name: String,
    generation: u64,
}

impl FaultyFile {
    fn with<T>(&self, run: impl FnOnce(&mut Disk, &str) -> io::Result<T>) -> io::Result<T> {
        let mut disk = self.medium.disk();
        if disk.dead || disk.generation != self.generation || !disk.files.contains_key(&self.name) {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        run(&mut disk, &self.name)
    }
}

impl Disk {
    fn fail_write(&mut self) -> io::Result<()> {
        self.writes += 1;
        match self.fault {
            Some(Fault::Writes { after_writes, errno }) if self.writes > after_writes => {
                Err(io::Error::from_raw_os_error(errno))
            }
            Some(Fault::Writes { .. } | Fault::PowerCut { .. }) | None => Ok(()),
        }
    }
}

impl StorageBackend for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        self.with(|disk, name| Ok(disk.files[name].live.len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.with(|disk, name| {
            let from = offset as usize;
            let bytes = disk.files[name].live.get(from..from + out.len());
            out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.with(|disk, name| {
            disk.fail_write()?;
            let file = disk.files.get_mut(name).unwrap();
            file.live.resize(len as usize, 0);
            // A file system keeps its own journal: sizes survive, new content is zero.
            file.synced.resize(len as usize, 0);
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.with(|disk, name| {
            disk.syncs += 1;
            if let Some(Fault::PowerCut { after_syncs }) = disk.fault
                && disk.syncs > after_syncs
            {
                disk.dead = true;
                return Err(io::Error::from_raw_os_error(EIO));
            }
            let file = disk.files.get_mut(name).unwrap();
            for (offset, bytes) in file.pending.drain(..) {
                // What was written beyond a later, shorter end is gone.
                let end = file.synced.len().min(offset + bytes.len());
                if let Some(room) = end.checked_sub(offset) {
                    file.synced[offset..end].copy_from_slice(&bytes[..room]);
                }
            }
            Ok(())
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.with(|disk, name| {
            disk.fail_write()?;
            let file = disk.files.get_mut(name).unwrap();
            let from = offset as usize;
            file.live[from..from + data.len()].copy_from_slice(data);
            file.pending.push((from, data.to_vec()));
            Ok(())
        })
    }
}

impl Medium for FaultyMedium {
    fn open(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        let disk = self.disk();
        if disk.dead {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        let file = disk.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        if file.live.is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(self.file(name, disk.generation))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        let mut disk = self.disk();
        if disk.dead {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        if disk.files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        disk.files.insert(name.to_owned(), FileImage::default());
        Ok(self.file(name, disk.generation))
    }

    fn folders(&self, folder: &str) -> io::Result<Vec<String>> {
        let prefix = format!("{folder}/");
        let disk = self.disk();
        let names = disk.files.keys().filter_map(|name| name.strip_prefix(&prefix));
        let folders: BTreeSet<_> = names.filter_map(|name| name.split_once('/')).collect();
        let mut folders: Vec<_> = folders.into_iter().map(|(name, _)| name.to_owned()).collect();
        folders.dedup();
        Ok(folders)
    }

    fn settle(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let prefix = format!("{folder}/");
        let disk = self.disk();
        let names = disk.files.keys().filter_map(|name| name.strip_prefix(&prefix));
        Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk().files.remove(name);
        Ok(())
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        Ok(self.disk().files.contains_key(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk();
        if disk.dead {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        let file = disk.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        disk.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn allocated_bytes(&self, name: &str) -> io::Result<u64> {
        let disk = self.disk();
        Ok(disk.files.get(name).map_or(0, |file| file.live.len() as u64))
    }

    fn copy(&self, name: &str, target: &Path) -> io::Result<u64> {
        let disk = self.disk();
        let file = disk.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        std::fs::write(target, &file.live)?;
        Ok(file.live.len() as u64)
    }
}
