//! The memory that all ingest requests may use together: their bodies, and the decoded samples.
//!
//! A request reserves memory before it builds anything, so that small bodies that decode into much
//! data stay within the limit.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The unit in which memory is counted, in bytes.
const UNIT_BYTES: usize = 1024;
/// The maximum size of a decoded JSON object: OTLP's data points are the largest.
const OBJECT_BYTES: usize = 400;
/// The maximum size of any other decoded JSON value, in addition to its text.
const VALUE_BYTES: usize = 40;

/// The shared limit. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct IngestMemory(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    used: AtomicUsize,
    total: AtomicUsize,
}

/// The reason why a request gets no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoMemory {
    /// Other requests use the memory; a retry may succeed.
    #[error("other requests use all memory for ingest (ingest.body_memory_max)")]
    Busy,
    /// The request needs more than the limit.
    #[error(
        "decoding the request takes more than {limit} bytes: send smaller requests or raise \
         ingest.body_memory_max"
    )]
    TooLarge {
        /// The limit for all requests together.
        limit: usize,
    },
}

/// The memory of one request; dropping it releases the memory.
#[derive(Debug)]
pub struct ReservedMemory {
    memory: IngestMemory,
    bytes: usize,
}

impl IngestMemory {
    /// Returns a limit in bytes.
    pub fn new(bytes: usize) -> Self {
        let memory = Self::default();
        memory.set_total(bytes);
        memory
    }

    /// Changes the limit. Requests keep the memory that they have.
    pub fn set_total(&self, bytes: usize) {
        self.0.total.store(bytes / UNIT_BYTES * UNIT_BYTES, Ordering::Relaxed);
    }

    /// Returns the number of bytes in use.
    pub fn used_bytes(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Reserves memory for a request.
    ///
    /// # Errors
    /// Too little memory is left.
    pub fn reserve(&self, bytes: usize) -> Result<ReservedMemory, NoMemory> {
        let bytes = self.reserve_units(0, bytes)?;
        Ok(ReservedMemory { memory: self.clone(), bytes })
    }

    /// Reserves whole units for a request that holds some; returns their bytes.
    fn reserve_units(&self, held: usize, bytes: usize) -> Result<usize, NoMemory> {
        let total = self.0.total.load(Ordering::Relaxed);
        let bytes = bytes.checked_next_multiple_of(UNIT_BYTES).unwrap_or(usize::MAX);
        if held.saturating_add(bytes) > total {
            return Err(NoMemory::TooLarge { limit: total });
        }
        let add = |used: usize| used.checked_add(bytes).filter(|used| *used <= total);
        match self.0.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(bytes),
            Err(_) => Err(NoMemory::Busy),
        }
    }
}

impl ReservedMemory {
    /// Reserves more memory.
    ///
    /// # Errors
    /// Too little memory is left.
    pub fn grow(&mut self, bytes: usize) -> Result<(), NoMemory> {
        self.bytes += self.memory.reserve_units(self.bytes, bytes)?;
        Ok(())
    }
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        self.memory.0.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Returns an upper bound for the size of a decoded JSON text, in bytes.
pub fn json_bytes(text: &[u8]) -> usize {
    let (mut objects, mut values) = (0, 0);
    for byte in text {
        objects += usize::from(*byte == b'{');
        values += usize::from(matches!(byte, b',' | b'['));
    }
    text.len() + objects * OBJECT_BYTES + values * VALUE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reserved_and_released() {
        let memory = IngestMemory::new(10 * UNIT_BYTES);
        let mut held = memory.reserve(1).unwrap();
        held.grow(3 * UNIT_BYTES).unwrap();
        assert_eq!(memory.used_bytes(), 4 * UNIT_BYTES);
        assert_eq!(memory.reserve(7 * UNIT_BYTES).unwrap_err(), NoMemory::Busy);
        let too_large = NoMemory::TooLarge { limit: 10 * UNIT_BYTES };
        assert_eq!(held.grow(7 * UNIT_BYTES), Err(too_large));
        assert_eq!(memory.reserve(11 * UNIT_BYTES).unwrap_err(), too_large);
        // A smaller limit leaves requests the memory that they have.
        memory.set_total(5 * UNIT_BYTES);
        assert_eq!(memory.reserve(2 * UNIT_BYTES).unwrap_err(), NoMemory::Busy);
        let last = memory.reserve(UNIT_BYTES).unwrap();
        drop(held);
        drop(last);
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn small_json_objects_take_much_more_memory_than_their_text() {
        assert!(json_bytes(&b"{},".repeat(1000)) >= 440_000);
        assert_eq!(json_bytes(b"\"text\""), 6);
    }
}
