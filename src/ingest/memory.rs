//! The memory that senders' requests take together: their bodies, and what the bodies become.
//!
//! It is taken before anything is built, so that small bodies which become large cannot take more
//! than all requests may.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory is counted in units of this many bytes.
const UNIT_BYTES: usize = 1024;
/// What an object of a JSON text becomes at most: OTLP's data points are the largest.
const OBJECT_BYTES: usize = 400;
/// What any other value of a JSON text becomes at most, its own bytes not counted.
const VALUE_BYTES: usize = 40;

/// All of it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct IngestMemory {
    units: Arc<Semaphore>,
    total: usize,
}

/// Why there is no memory for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoMemory {
    /// It may come again later.
    #[error("other requests take all memory that they may (ingest.body_memory_max)")]
    Busy,
    /// It needs more than there is.
    #[error(
        "the request becomes more than {limit} bytes: send smaller ones or raise \
         ingest.body_memory_max"
    )]
    TooLarge {
        /// What there is for all requests.
        limit: usize,
    },
}

/// What one request has taken; given back when it is dropped.
#[derive(Debug)]
pub struct HeldMemory {
    of: IngestMemory,
    permit: OwnedSemaphorePermit,
}

impl IngestMemory {
    /// Room for this many bytes.
    pub fn new(bytes: usize) -> Self {
        let total = (bytes / UNIT_BYTES).min(Semaphore::MAX_PERMITS).min(u32::MAX as usize);
        Self { units: Arc::new(Semaphore::new(total)), total }
    }

    /// Bytes taken now.
    pub fn used_bytes(&self) -> usize {
        (self.total - self.units.available_permits()) * UNIT_BYTES
    }

    /// Takes memory for a request.
    ///
    /// # Errors
    /// When there is not so much left.
    pub fn take(&self, bytes: usize) -> Result<HeldMemory, NoMemory> {
        let permit = self.permit(0, bytes)?;
        Ok(HeldMemory { of: self.clone(), permit })
    }

    fn permit(&self, held: usize, bytes: usize) -> Result<OwnedSemaphorePermit, NoMemory> {
        let units = bytes.div_ceil(UNIT_BYTES);
        if held.saturating_add(units) > self.total {
            return Err(NoMemory::TooLarge { limit: self.total * UNIT_BYTES });
        }
        let taken = self.units.clone().try_acquire_many_owned(units as u32);
        taken.map_err(|_| NoMemory::Busy)
    }
}

impl HeldMemory {
    /// Takes more.
    ///
    /// # Errors
    /// When there is not so much left.
    pub fn grow(&mut self, bytes: usize) -> Result<(), NoMemory> {
        let more = self.of.permit(self.permit.num_permits(), bytes)?;
        self.permit.merge(more);
        Ok(())
    }
}

/// What a JSON text becomes when it is read, at most, in bytes.
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
    fn memory_is_taken_before_and_given_back() {
        let memory = IngestMemory::new(10 * UNIT_BYTES);
        let mut held = memory.take(1).unwrap();
        held.grow(3 * UNIT_BYTES).unwrap();
        assert_eq!(memory.used_bytes(), 4 * UNIT_BYTES);
        assert_eq!(memory.take(7 * UNIT_BYTES).unwrap_err(), NoMemory::Busy);
        let too_large = NoMemory::TooLarge { limit: 10 * UNIT_BYTES };
        assert_eq!(held.grow(7 * UNIT_BYTES), Err(too_large));
        assert_eq!(memory.take(11 * UNIT_BYTES).unwrap_err(), too_large);
        drop(held);
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn a_json_text_of_small_objects_weighs_much() {
        assert!(json_bytes(&b"{},".repeat(1000)) >= 440_000);
        assert_eq!(json_bytes(b"\"text\""), 6);
    }
}
