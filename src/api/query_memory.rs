//! The memory that all queries share: what one takes beyond it is refused, not the daemon
//! ended for want of memory.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// See the module.
#[derive(Debug, Clone)]
pub struct QueryMemory {
    free: Arc<AtomicUsize>,
}

impl QueryMemory {
    /// So many bytes.
    pub fn new(total: usize) -> Self {
        Self { free: Arc::new(AtomicUsize::new(total)) }
    }

    /// What one query takes: nothing yet.
    pub(super) fn share(&self) -> Share {
        Share { free: self.free.clone(), taken: Cell::new(0) }
    }
}

/// What one query holds, until it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    free: Arc<AtomicUsize>,
    taken: Cell<usize>,
}

impl Share {
    /// Takes more; false when there is not so much left.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let less = |free: usize| free.checked_sub(bytes);
        let taken = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        if taken {
            self.taken.set(self.taken.get() + bytes);
        }
        taken
    }

    /// Gives back what is more than this.
    pub(super) fn keep(&self, bytes: usize) {
        let surplus = self.taken.get().saturating_sub(bytes);
        self.taken.set(self.taken.get() - surplus);
        self.free.fetch_add(surplus, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.free.fetch_add(self.taken.get(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back() {
        let memory = QueryMemory::new(100);
        let (one, other) = (memory.share(), memory.share());
        assert!(one.take(60) && other.take(40) && !other.take(1) && other.take(0));
        one.keep(10);
        assert!(other.take(50) && !other.take(1));
        drop(one);
        assert!(other.take(10) && !other.take(1));
        drop(other);
        assert!(memory.share().take(100));
    }
}
