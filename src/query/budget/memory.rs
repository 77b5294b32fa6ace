//! The memory that all queries share. A query that exceeds it fails, instead of the daemon running
//! out of memory.
//!
//! Must never know: what the memory is used for.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The shared memory. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct MemoryPool {
    free: Arc<AtomicUsize>,
}

impl MemoryPool {
    /// Creates a pool with a number of bytes.
    pub(super) fn new(total: usize) -> Self {
        Self { free: Arc::new(AtomicUsize::new(total)) }
    }

    /// Creates an empty reservation for a query.
    pub(super) fn reservation(&self) -> Reservation {
        Reservation { free: self.free.clone(), taken: Cell::new(0) }
    }

    /// Returns the number of free bytes.
    pub(super) fn free(&self) -> usize {
        self.free.load(Ordering::Relaxed)
    }
}

/// The memory of one query. Dropping the reservation releases it.
#[derive(Debug)]
pub struct Reservation {
    free: Arc<AtomicUsize>,
    taken: Cell<usize>,
}

impl Reservation {
    /// Reserves more memory; returns false when there is not enough.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let less = |free: usize| free.checked_sub(bytes);
        let taken = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        if taken {
            self.taken.set(self.taken.get() + bytes);
        }
        taken
    }

    /// Returns the number of reserved bytes.
    pub(super) fn bytes(&self) -> usize {
        self.taken.get()
    }

    /// Releases memory beyond a number of bytes.
    pub(super) fn keep(&self, bytes: usize) {
        let surplus = self.taken.get().saturating_sub(bytes);
        self.taken.set(self.taken.get() - surplus);
        self.free.fetch_add(surplus, Ordering::Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.free.fetch_add(self.taken.get(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back() {
        let memory = MemoryPool::new(100);
        let (first, second) = (memory.reservation(), memory.reservation());
        assert!(first.take(60) && second.take(40) && !second.take(1) && second.take(0));
        first.keep(10);
        assert!(second.take(50) && !second.take(1));
        drop(first);
        assert!(second.take(10) && !second.take(1));
        drop(second);
        assert_eq!(memory.free(), 100);
    }
}
