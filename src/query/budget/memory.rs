//! The memory pool that all queries share. A query fails when the pool has too little memory left
//! for it, so that the daemon itself does not run out of memory.
//!
//! Must never know: what the memory is used for.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The pool of memory. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct MemoryPool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    used: AtomicUsize,
    total: AtomicUsize,
}

impl MemoryPool {
    /// Creates a pool of `total` bytes.
    pub(super) fn new(total: usize) -> Self {
        let (used, total) = (AtomicUsize::new(0), AtomicUsize::new(total));
        Self { shared: Arc::new(Shared { used, total }) }
    }

    /// Changes the size of the pool. Queries keep the memory that they have.
    pub(super) fn set_total(&self, total: usize) {
        self.shared.total.store(total, Ordering::Relaxed);
    }

    /// Creates an empty reservation for a query.
    pub(super) fn reservation(&self) -> Reservation {
        Reservation { shared: self.shared.clone(), reserved: AtomicUsize::new(0) }
    }

    /// Returns the number of free bytes.
    pub(super) fn free(&self) -> usize {
        let total = self.shared.total.load(Ordering::Relaxed);
        total.saturating_sub(self.shared.used.load(Ordering::Relaxed))
    }
}

/// The memory that one query has reserved. Dropping the reservation returns the memory to the pool.
#[derive(Debug)]
pub struct Reservation {
    shared: Arc<Shared>,
    reserved: AtomicUsize,
}

impl Reservation {
    /// Reserves more memory. Returns false, and reserves nothing, when the pool has too little.
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        let total = self.shared.total.load(Ordering::Relaxed);
        let add = |used: usize| used.checked_add(bytes).filter(|used| bytes == 0 || *used <= total);
        let used = &self.shared.used;
        let is_reserved = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
        if is_reserved {
            self.reserved.fetch_add(bytes, Ordering::Relaxed);
        }
        is_reserved
    }

    /// Creates an empty reservation of the same pool.
    pub(super) fn beside(&self) -> Self {
        Self { shared: self.shared.clone(), reserved: AtomicUsize::new(0) }
    }

    /// Adds the memory of another reservation of the same pool.
    pub(super) fn absorb(&self, other: &Self) {
        self.reserved.fetch_add(other.reserved.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Returns the number of reserved bytes.
    pub(super) fn bytes(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Releases all but the first `bytes` bytes.
    pub(super) fn shrink_to(&self, bytes: usize) {
        let surplus = self.bytes().saturating_sub(bytes);
        self.reserved.fetch_sub(surplus, Ordering::Relaxed);
        self.shared.used.fetch_sub(surplus, Ordering::Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shared.used.fetch_sub(self.bytes(), Ordering::Relaxed);
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
        let third = second.beside();
        assert!(third.reserve(10) && !second.reserve(1));
        second.absorb(&third);
        drop(third);
        assert!(!second.reserve(1));
        drop(second);
        assert_eq!(memory.free(), 100);
    }
}
