//! A folder whose operations fail when they are told to.

use std::{
    io,
    ops::Bound,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use granary::store::{Folder, Medium};
use redb::{BackendError, StorageBackend};

/// What fails from now on.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) reads: AtomicBool,
    pub(crate) syncs: AtomicBool,
    pub(crate) removals: AtomicBool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct FailingFolder {
    folder: Folder,
    pub(crate) faults: Arc<Faults>,
}

fn unless(fails: &AtomicBool) -> io::Result<()> {
    if fails.load(Ordering::Relaxed) { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
}

impl FailingFolder {
    pub(crate) fn new(path: &Path) -> Self {
        Self { folder: Folder::new(path).unwrap(), faults: Arc::default() }
    }

    fn wrap(&self, file: Box<dyn StorageBackend>) -> Box<dyn StorageBackend> {
        Box::new(FailingFile { file, faults: self.faults.clone() })
    }
}

impl Medium for FailingFolder {
    fn open(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        Ok(self.wrap(self.folder.open(name)?))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        Ok(self.wrap(self.folder.create(name)?))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.folder.list(folder)
    }

    fn folders(&self, folder: &str) -> io::Result<Vec<String>> {
        self.folder.folders(folder)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        unless(&self.faults.removals)?;
        self.folder.remove(name)
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.folder.exists(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }

    fn settle(&self, name: &str) -> io::Result<()> {
        self.folder.settle(name)
    }

    fn allocated_bytes(&self, name: &str) -> io::Result<u64> {
        self.folder.allocated_bytes(name)
    }

    fn copy(&self, name: &str, target: &Path) -> io::Result<u64> {
        self.folder.copy(name, target)
    }
}

#[derive(Debug)]
struct FailingFile {
    file: Box<dyn StorageBackend>,
    faults: Arc<Faults>,
}

impl StorageBackend for FailingFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        unless(&self.faults.reads)?;
        self.file.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        unless(&self.faults.syncs)?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}
