//! A file that remembers whether an operation on it failed.
//!
//! After the first failed read or write, redb refuses every use of a database, and later callers do
//! not see the cause. With this file, the store recognizes the failure and reopens the database.
//!
//! The file also counts the bytes that each thread writes, so that a commit can report its number
//! of bytes.
//!
//! Must never know: the reaction to a failure.

use std::{
    cell::Cell,
    io,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use redb::{BackendError, StorageBackend};

thread_local! {
    static WRITTEN: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of bytes that this thread has written to files.
pub(crate) fn written_by_this_thread() -> u64 {
    WRITTEN.get()
}

/// Adds written bytes to the count of this thread; writers of files that are not watched call it.
pub(crate) fn note_written(bytes: usize) {
    WRITTEN.set(WRITTEN.get().wrapping_add(bytes as u64));
}

/// A file with a flag that is set when an operation on it fails.
#[derive(Debug)]
pub(crate) struct Watched {
    file: Box<dyn StorageBackend>,
    failed: Arc<AtomicBool>,
}

impl Watched {
    /// Creates a watched file, and the flag of its failure.
    pub(crate) fn new(file: Box<dyn StorageBackend>) -> (Self, Arc<AtomicBool>) {
        let failed = Arc::new(AtomicBool::new(false));
        (Self { file, failed: failed.clone() }, failed)
    }

    fn note<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        if outcome.is_err() {
            self.failed.store(true, Ordering::Release);
        }
        outcome
    }
}

type Locked<T> = Result<T, BackendError>;

impl StorageBackend for Watched {
    fn len(&self) -> io::Result<u64> {
        self.note(self.file.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.note(self.file.read(offset, out))
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.note(self.file.set_len(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.note(self.file.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        note_written(data.len());
        self.note(self.file.write(offset, data))
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        self.file.query_lock_range(start, end)
    }
}
