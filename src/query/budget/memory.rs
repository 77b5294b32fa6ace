//! The memory pool that all queries share. A query fails when the pool has too little memory left
//! for it, so that the daemon itself does not run out of memory.
//!
//! Must never know: what the memory is used for.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The pool of memory. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct MemoryPool {
    free: Arc<AtomicUsize>,
}

impl MemoryPool {
    /// Creates a pool of `total` bytes.
    pub(super) fn new(total: usize) -> Self {
        Self { free: Arc::new(AtomicUsize::new(total)) }
    }

    /// Creates an empty reservation for a query.
    pub(super) fn reservation(&self) -> Reservation {
        Reservation { free: self.free.clone(), reserved: Cell::new(0) }
    }

    /// Returns the number of free bytes.
    pub(super) fn free(&self) -> usize {
        self.free.load(Ordering::Relaxed)
    }
}

/// The memory that one query has reserved. Dropping the reservation returns the memory to the pool.
#[derive(Debug)]
pub struct Reservation {
    free: Arc<AtomicUsize>,
    reserved: Cell<usize>,
}

impl Reservation {
    /// Reserves more memory. Returns false, and reserves nothing, when the pool has too little.
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        let subtract = |free: usize| free.checked_sub(bytes);
        let is_reserved =
            self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract).is_ok();
        if is_reserved {
            self.reserved.set(self.reserved.get() + bytes);
        }
        is_reserved
    }

    /// Returns the number of reserved bytes.
    pub(super) fn bytes(&self) -> usize {
        self.reserved.get()
    }

    /// Releases all but the first `bytes` bytes.
    pub(super) fn shrink_to(&self, bytes: usize) {
        let surplus = self.reserved.get().saturating_sub(bytes);
        self.reserved.set(self.reserved.get() - surplus);
        self.free.fetch_add(surplus, Ordering::Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.free.fetch_add(self.reserved.get(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_return_their_memory_to_the_pool() {
        let memory = MemoryPool::new(100);
        let (first, second) = (memory.reservation(), memory.reservation());
        assert!(first.reserve(60) && second.reserve(40) && !second.reserve(1) && second.reserve(0));
        first.shrink_to(10);
        assert!(second.reserve(50) && !second.reserve(1));
        drop(first);
        assert!(second.reserve(10) && !second.reserve(1));
        drop(second);
        assert_eq!(memory.free(), 100);
    }
}
