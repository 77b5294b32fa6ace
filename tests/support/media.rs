//! A folder that calls a hook before each operation; hooks fail or block operations on demand. Must
//! never know how the store reacts.

use std::{
    fmt::Debug,
    io,
    ops::Bound,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use granary::store::{FORMAT_VERSION, Folder, Medium};
use parking_lot::{Condvar, Mutex};
use redb::{BackendError, StorageBackend};

/// The time for which a test waits for a sync.
const DEADLINE: Duration = Duration::from_secs(30);

/// A hook that is called with a file's name before each operation on the file.
pub(crate) trait Hook: Debug + Send + Sync + 'static {
    /// Returns the format that the store writes.
    fn format(&self) -> u64 {
        FORMAT_VERSION
    }

    fn before_read(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn before_sync(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn before_removal(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }
}

/// A later release, whose format is the next format.
#[derive(Debug, Default)]
pub(crate) struct LaterRelease;

impl Hook for LaterRelease {
    fn format(&self) -> u64 {
        FORMAT_VERSION + 1
    }
}

/// An earlier release, whose format is the previous format.
#[derive(Debug, Default)]
pub(crate) struct EarlierRelease;

impl Hook for EarlierRelease {
    fn format(&self) -> u64 {
        FORMAT_VERSION - 1
    }
}

/// The operations that fail from now on.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) reads: AtomicBool,
    pub(crate) syncs: AtomicBool,
    pub(crate) removals: AtomicBool,
}

impl Hook for Faults {
    fn before_read(&self, _: &str) -> io::Result<()> {
        fail_if(&self.reads)
    }

    fn before_sync(&self, _: &str) -> io::Result<()> {
        fail_if(&self.syncs)
    }

    fn before_removal(&self, _: &str) -> io::Result<()> {
        fail_if(&self.removals)
    }
}

fn fail_if(fails: &AtomicBool) -> io::Result<()> {
    if fails.load(Ordering::Relaxed) { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
}

/// A gate: while it is closed, syncs of files whose name contains a word block.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    closed_for: Mutex<Option<&'static str>>,
    waiting: AtomicU64,
    changed: Condvar,
}

impl Gate {
    /// Closes the gate for files whose name contains a word, or opens it.
    pub(crate) fn set(&self, closed_for: Option<&'static str>) {
        *self.closed_for.lock() = closed_for;
        self.changed.notify_all();
    }

    pub(crate) fn wait_until_a_sync_waits(&self) {
        let mut closed_for = self.closed_for.lock();
        let no_sync_waits = |_: &mut Option<&str>| self.waiting.load(Ordering::SeqCst) == 0;
        let waited = self.changed.wait_while_for(&mut closed_for, no_sync_waits, DEADLINE);
        assert!(!waited.timed_out(), "no file is synced");
    }
}

impl Hook for Gate {
    fn before_sync(&self, name: &str) -> io::Result<()> {
        let mut closed_for = self.closed_for.lock();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_all();
        self.changed.wait_while(&mut closed_for, |word| word.is_some_and(|w| name.contains(w)));
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

/// A folder with a hook.
#[derive(Debug)]
pub(crate) struct HookedFolder<H> {
    folder: Folder,
    hook: Arc<H>,
}

impl<H: Hook> HookedFolder<H> {
    pub(crate) fn new(path: &Path, hook: Arc<H>) -> Self {
        Self { folder: Folder::new(path).unwrap(), hook }
    }

    fn wrap(&self, name: &str, file: Box<dyn StorageBackend>) -> Box<dyn StorageBackend> {
        Box::new(HookedFile { file, name: name.to_owned(), hook: self.hook.clone() })
    }
}

impl<H: Hook> Medium for HookedFolder<H> {
    fn format(&self) -> u64 {
        self.hook.format()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        Ok(self.wrap(name, self.folder.open(name)?))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        Ok(self.wrap(name, self.folder.create(name)?))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.folder.list(folder)
    }

    fn folders(&self, folder: &str) -> io::Result<Vec<String>> {
        self.folder.folders(folder)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.hook.before_removal(name)?;
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

    fn allocate(&self, name: &str, beyond: u64, bytes_max: u64) -> io::Result<()> {
        self.folder.allocate(name, beyond, bytes_max)
    }

    fn allocated_bytes(&self, name: &str) -> io::Result<u64> {
        self.folder.allocated_bytes(name)
    }

    fn copy(&self, name: &str, target: &Path) -> io::Result<u64> {
        self.folder.copy(name, target)
    }
}

#[derive(Debug)]
struct HookedFile<H> {
    file: Box<dyn StorageBackend>,
    name: String,
    hook: Arc<H>,
}

impl<H: Hook> StorageBackend for HookedFile<H> {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.hook.before_read(&self.name)?;
        self.file.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.hook.before_sync(&self.name)?;
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
