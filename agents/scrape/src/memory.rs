//! The memory that all targets share: what their answers take while they arrive, the series that
//! they show, and samples that wait for a round. It is counted before it is taken.
//!
//! Must never know: what is kept in it.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use granary_agent_kit::KnownReading;

/// What all targets share where nothing else is set.
pub const MEMORY_MAX: usize = 32 << 20;
/// With less, a line of an answer has no room.
pub const MEMORY_MIN: usize = 1 << 20;
/// The last part of the memory is for what takes little: a big target fails before small ones do.
const KEPT_FREE: usize = 4;
/// What takes little: this part of the memory.
const LITTLE: usize = 64;
/// A sample that waits, in a list that grows.
const READING_BYTES: usize = 2 * size_of::<KnownReading>();

/// The memory of one scraping agent.
#[derive(Debug)]
pub(crate) struct Memory {
    max: usize,
    used: AtomicUsize,
    refused: AtomicU64,
}

/// A part of the memory, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    memory: Arc<Memory>,
    held: Cell<usize>,
}

/// Samples and the memory that they and their series take.
#[derive(Debug)]
pub(crate) struct Samples {
    pub(crate) readings: Vec<KnownReading>,
    lease: Lease,
}

impl Memory {
    /// All of `max` bytes are free.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, used: AtomicUsize::new(0), refused: AtomicU64::new(0) })
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// How often there was too little.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Nothing of it yet.
    pub(crate) fn lease(self: &Arc<Self>) -> Lease {
        Lease { memory: Arc::clone(self), held: Cell::new(0) }
    }

    /// No samples yet.
    pub(crate) fn samples(self: &Arc<Self>) -> Samples {
        Samples { readings: Vec::new(), lease: self.lease() }
    }
}

impl Lease {
    /// Takes so many bytes more.
    ///
    /// # Errors
    /// When they are not free: then none are taken.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), String> {
        let max = self.memory.max;
        let takes_little = self.held.get().saturating_add(bytes) <= max / LITTLE;
        let limit = if takes_little { max } else { max - max / KEPT_FREE };
        let fit = |used: usize| used.checked_add(bytes).filter(|used| *used <= limit);
        let taken = self.memory.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fit);
        if taken.is_err() {
            self.memory.refused.fetch_add(1, Ordering::Relaxed);
            return Err(format!(
                "there is no room for its answer in the memory that all targets share, {max} \
                 bytes: raise scrape_memory_max, or scrape less"
            ));
        }
        self.held.set(self.held.get() + bytes);
        Ok(())
    }

    /// Takes them whether they are free or not, for what is little and must be there.
    fn take_always(&self, bytes: usize) {
        self.memory.used.fetch_add(bytes, Ordering::Relaxed);
        self.held.set(self.held.get() + bytes);
    }

    /// Moves bytes to another lease.
    pub(crate) fn move_to(&self, other: &Self, bytes: usize) {
        let bytes = bytes.min(self.held.get());
        self.held.set(self.held.get() - bytes);
        other.held.set(other.held.get() + bytes);
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        let bytes = bytes.min(self.held.get());
        self.held.set(self.held.get() - bytes);
        self.memory.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_back(self.held.get());
    }
}

impl Samples {
    /// Adds a sample.
    ///
    /// # Errors
    /// When there is no room for it.
    pub(crate) fn push(&mut self, reading: KnownReading) -> Result<(), String> {
        self.lease.take(READING_BYTES)?;
        self.readings.push(reading);
        Ok(())
    }

    /// Adds a sample that must be there, such as a scrape's report.
    pub(crate) fn push_always(&mut self, reading: KnownReading) {
        self.lease.take_always(READING_BYTES);
        self.readings.push(reading);
    }

    /// Adds the last sample of a series whose memory was in another lease.
    pub(crate) fn push_last(&mut self, reading: KnownReading, (lease, bytes): (&Lease, usize)) {
        lease.move_to(&self.lease, bytes);
        self.push_always(reading);
    }

    /// The memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.lease.held.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_counted_and_given_back() {
        let memory = Memory::new(6400);
        let (one, other) = (memory.lease(), memory.lease());
        one.take(4000).unwrap();
        other.take(800).unwrap();
        one.move_to(&other, 1000);
        assert_eq!((memory.used(), memory.refused()), (4800, 0));
        drop(one);
        assert_eq!(memory.used(), 1800);
        other.give_back(300);
        other.give_back(9_999_999);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn what_takes_much_leaves_room_for_what_takes_little() {
        let memory = Memory::new(6400);
        let big = memory.lease();
        assert!(big.take(4801).is_err(), "a quarter is kept free");
        big.take(4800).unwrap();
        assert!(big.take(1).is_err());
        let small: Vec<Lease> = (0..16).map(|_| memory.lease()).collect();
        assert!(small.iter().all(|lease| lease.take(100).is_ok()));
        assert!(small[0].take(1).is_err(), "it takes more than a little");
        assert!(memory.lease().take(1).is_err(), "all of it is taken");
        assert_eq!((memory.used(), memory.refused()), (6400, 4));
    }
}
