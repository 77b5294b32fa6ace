//! A file that keeps the blocks after its end when its length changes.
//!
//! redb often extends a file and then truncates it. The system frees the blocks after the new end,
//! and on a nearly full disk, another program could use them. Must never know: the content.

use std::{fs::File, io, ops::Bound, os::unix::fs::MetadataExt};

use redb::{BackendError, StorageBackend, backends::FileBackend};
use rustix::fs::{FallocateFlags, fallocate};

/// The maximum number of bytes that stay allocated after the end.
const BEYOND_MAX: u64 = 1 << 20;

/// A file whose blocks after the end stay allocated.
#[derive(Debug)]
pub(super) struct SteadyFile {
    backend: FileBackend,
    file: File,
}

impl SteadyFile {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let copy = file.try_clone()?;
        Ok(Self { backend: FileBackend::new(file).map_err(io::Error::other)?, file: copy })
    }
}

type Locked<T> = Result<T, BackendError>;

impl StorageBackend for SteadyFile {
    fn len(&self) -> io::Result<u64> {
        self.backend.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.backend.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let allocated = self.file.metadata()?.blocks() * 512;
        self.backend.set_len(length)?;
        let kept = allocated.min(length.saturating_add(BEYOND_MAX));
        if kept > length
            && let Err(cause) = fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, kept)
        {
            tracing::debug!(%cause, "blocks after the end of a file were freed");
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.backend.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.backend.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.backend.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        self.backend.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        self.backend.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        self.backend.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        self.backend.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        self.backend.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        self.backend.query_lock_range(start, end)
    }
}
