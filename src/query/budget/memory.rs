//! The memory that all queries share: what one takes beyond it is refused, not the daemon
//! ended for want of memory.
//!
//! Must never know: what is kept in it.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// All of it. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct MemoryPool {
    free: Arc<AtomicUsize>,
}

impl MemoryPool {
    /// So many bytes.
    pub(super) fn new(total: usize) -> Self {
        Self { free: Arc::new(AtomicUsize::new(total)) }
    }

    /// What one query takes: nothing yet.
    pub(super) fn reservation(&self) -> Reservation {
        Reservation { free: self.free.clone(), taken: Cell::new(0) }
    }

    /// Bytes that nobody has taken.
    pub(super) fn free(&self) -> usize {
        self.free.load(Ordering::Relaxed)
    }
}

/// What one query has taken of the memory that all share; given back when it is dropped.
#[derive(Debug)]
pub struct Reservation {
    free: Arc<AtomicUsize>,
    taken: Cell<usize>,
}

impl Reservation {
    /// Takes more; false when there is not so much left.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let less = |free: usize| free.checked_sub(bytes);
        let taken = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        if taken {
            self.taken.set(self.taken.get() + bytes);
        }
        taken
    }

    /// Bytes taken.
    pub(super) fn bytes(&self) -> usize {
        self.taken.get()
    }

    /// Gives back what is more than this.
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
        let (one, other) = (memory.reservation(), memory.reservation());
        assert!(one.take(60) && other.take(40) && !other.take(1) && other.take(0));
        one.keep(10);
        assert!(other.take(50) && !other.take(1));
        drop(one);
        assert!(other.take(10) && !other.take(1));
        drop(other);
        assert_eq!(memory.free(), 100);
    }
}
