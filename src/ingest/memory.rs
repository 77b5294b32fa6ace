//! The memory that all ingest requests may use together: their bodies, and the decoded samples.
//!
//! A request reserves memory before it builds anything, so that small bodies that decode into much
//! data stay within the limit.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit in which memory is counted, in bytes.
const UNIT_BYTES: usize = 1024;
/// The maximum size of a decoded JSON object: OTLP's data points are the largest.
const OBJECT_BYTES: usize = 400;
/// The maximum size of any other decoded JSON value, in addition to its text.
const VALUE_BYTES: usize = 40;

/// The shared limit. Clones are cheap.
#[derive(Debug, Clone)]
pub struct IngestMemory {
    units: Arc<Semaphore>,
    total: usize,
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
    permit: OwnedSemaphorePermit,
}

impl IngestMemory {
    /// Returns a limit in bytes.
    pub fn new(bytes: usize) -> Self {
        let total = (bytes / UNIT_BYTES).min(Semaphore::MAX_PERMITS).min(u32::MAX as usize);
        Self { units: Arc::new(Semaphore::new(total)), total }
    }

    /// Returns the number of bytes in use.
    pub fn used_bytes(&self) -> usize {
        (self.total - self.units.available_permits()) * UNIT_BYTES
    }

    /// Reserves memory for a request.
    ///
    /// # Errors
    /// Too little memory is left.
    pub fn reserve(&self, bytes: usize) -> Result<ReservedMemory, NoMemory> {
        let permit = self.acquire(0, bytes)?;
        Ok(ReservedMemory { memory: self.clone(), permit })
    }

    fn acquire(&self, held: usize, bytes: usize) -> Result<OwnedSemaphorePermit, NoMemory> {
        let units = bytes.div_ceil(UNIT_BYTES);
        if held.saturating_add(units) > self.total {
            return Err(NoMemory::TooLarge { limit: self.total * UNIT_BYTES });
        }
        let permit = self.units.clone().try_acquire_many_owned(units as u32);
        permit.map_err(|_| NoMemory::Busy)
    }
}

impl ReservedMemory {
    /// Reserves more memory.
    ///
    /// # Errors
    /// Too little memory is left.
    pub fn grow(&mut self, bytes: usize) -> Result<(), NoMemory> {
        let more = self.memory.acquire(self.permit.num_permits(), bytes)?;
        self.permit.merge(more);
        Ok(())
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
        drop(held);
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn small_json_objects_take_much_more_memory_than_their_text() {
        assert!(json_bytes(&b"{},".repeat(1000)) >= 440_000);
        assert_eq!(json_bytes(b"\"text\""), 6);
    }
}
