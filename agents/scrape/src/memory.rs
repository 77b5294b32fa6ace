//! The memory limit that all targets share: responses while they arrive, series, samples that wait
//! for a round, and the objects of Kubernetes. Memory is charged before it is allocated.
//!
//! Must never know: the content of the memory.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use granary_agent_kit::KnownReading;

/// The default limit.
pub const MEMORY_MAX: usize = 32 << 20;
/// The minimum limit: a single line of a response must fit.
pub const MEMORY_MIN: usize = 1 << 20;
/// The divisor of the memory limit for the reserve of small leases, so that a big target fails
/// before small targets do.
const RESERVE_DIVISOR: usize = 4;
/// The divisor of the memory limit for the maximum size of a small lease.
const SMALL_DIVISOR: usize = 64;
/// The memory of a waiting sample.
const READING_BYTES: usize = 2 * size_of::<KnownReading>();

/// The memory limit of an agent.
#[derive(Debug)]
pub(crate) struct Memory {
    max: usize,
    used: AtomicUsize,
    refused: AtomicU64,
}

/// A charged amount, which is released when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    memory: Arc<Memory>,
    held: Cell<usize>,
}

/// Samples, with the memory of the samples and their series.
#[derive(Debug)]
pub(crate) struct Samples {
    pub(crate) readings: Vec<KnownReading>,
    lease: Lease,
}

impl Memory {
    /// Creates a limit of `max` free bytes.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, used: AtomicUsize::new(0), refused: AtomicU64::new(0) })
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the number of failed requests.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Creates an empty lease.
    pub(crate) fn lease(self: &Arc<Self>) -> Lease {
        Lease { memory: Arc::clone(self), held: Cell::new(0) }
    }

    /// Creates an empty list.
    pub(crate) fn samples(self: &Arc<Self>) -> Samples {
        Samples { readings: Vec::new(), lease: self.lease() }
    }
}

impl Lease {
    /// Charges more bytes.
    ///
    /// # Errors
    /// The bytes are not free; nothing is charged.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), String> {
        let max = self.memory.max;
        let is_small = self.held.get().saturating_add(bytes) <= max / SMALL_DIVISOR;
        let limit = if is_small { max } else { max - max / RESERVE_DIVISOR };
        let add_if_free = |used: usize| used.checked_add(bytes).filter(|used| *used <= limit);
        let update =
            self.memory.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add_if_free);
        if update.is_err() {
            self.memory.refused.fetch_add(1, Ordering::Relaxed);
            return Err(format!(
                "no memory is free for the response; all targets and the objects of Kubernetes \
                 share {max} bytes: raise scrape_memory_max, or scrape fewer series"
            ));
        }
        self.held.set(self.held.get() + bytes);
        Ok(())
    }

    /// Charges bytes even beyond the limit, for small essential data.
    fn reserve_always(&self, bytes: usize) {
        self.memory.used.fetch_add(bytes, Ordering::Relaxed);
        self.held.set(self.held.get() + bytes);
    }

    /// Moves charged bytes to another lease.
    pub(crate) fn move_to(&self, other: &Self, bytes: usize) {
        let bytes = bytes.min(self.held.get());
        self.held.set(self.held.get() - bytes);
        other.held.set(other.held.get() + bytes);
    }

    pub(crate) fn release(&self, bytes: usize) {
        let bytes = bytes.min(self.held.get());
        self.held.set(self.held.get() - bytes);
        self.memory.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.release(self.held.get());
    }
}

impl Samples {
    /// Adds a sample.
    ///
    /// # Errors
    /// There is no free memory.
    pub(crate) fn push(&mut self, reading: KnownReading) -> Result<(), String> {
        let histogram_bytes = reading.histogram.as_ref().map_or(0, |histogram| histogram.bytes());
        self.lease.reserve(READING_BYTES + histogram_bytes)?;
        self.readings.push(reading);
        Ok(())
    }

    /// Adds an essential sample, such as a scrape's report, even beyond the limit.
    pub(crate) fn push_always(&mut self, reading: KnownReading) {
        self.lease.reserve_always(READING_BYTES);
        self.readings.push(reading);
    }

    /// Adds the last sample of a series, and moves the memory of the series from its lease.
    pub(crate) fn push_last(&mut self, reading: KnownReading, (lease, bytes): (&Lease, usize)) {
        lease.move_to(&self.lease, bytes);
        self.push_always(reading);
    }

    /// Returns the charged memory.
    pub(crate) fn bytes(&self) -> usize {
        self.lease.held.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charged_memory_is_counted_and_released() {
        let memory = Memory::new(6400);
        let (first, second) = (memory.lease(), memory.lease());
        first.reserve(4000).unwrap();
        second.reserve(800).unwrap();
        first.move_to(&second, 1000);
        assert_eq!((memory.used(), memory.refused()), (4800, 0));
        drop(first);
        assert_eq!(memory.used(), 1800);
        second.release(300);
        second.release(9_999_999);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn large_responses_leave_memory_for_small_responses() {
        let memory = Memory::new(6400);
        let big = memory.lease();
        assert!(big.reserve(4801).is_err(), "a quarter is reserved");
        big.reserve(4800).unwrap();
        assert!(big.reserve(1).is_err());
        let small: Vec<Lease> = (0..16).map(|_| memory.lease()).collect();
        assert!(small.iter().all(|lease| lease.reserve(100).is_ok()));
        assert!(small[0].reserve(1).is_err(), "the lease is no longer small");
        assert!(memory.lease().reserve(1).is_err(), "no memory is free");
        assert_eq!((memory.used(), memory.refused()), (6400, 4));
    }
}
