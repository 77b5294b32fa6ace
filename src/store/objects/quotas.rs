//! Quotas of objects: each kind has its own quota, so that no kind takes space from another. The
//! use is counted in memory; after a failed change, it is counted in the file again.
//!
//! Must never know: the content of objects.

use std::collections::BTreeMap;

use super::{OBJECTS_BYTES_MAX, ObjectKind, ObjectRefusal};

/// The number of objects of each kind, and their bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct QuotaUse(BTreeMap<ObjectKind, Used>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Used {
    count: u64,
    bytes: u64,
}

impl QuotaUse {
    /// Counts an existing row.
    pub(super) fn add(&mut self, kind: ObjectKind, bytes: usize) {
        let used = self.0.entry(kind).or_default();
        used.count += 1;
        used.bytes += bytes as u64;
    }

    /// Notes that a row is removed.
    pub(super) fn remove(&mut self, kind: ObjectKind, bytes: usize) {
        let used = self.0.entry(kind).or_default();
        used.count = used.count.saturating_sub(1);
        used.bytes = used.bytes.saturating_sub(bytes as u64);
    }

    /// Replaces a row of `before` bytes with a row of `bytes`; a row that does not grow always
    /// fits.
    pub(super) fn put(
        &mut self,
        kind: ObjectKind,
        before: Option<usize>,
        bytes: usize,
    ) -> Result<(), ObjectRefusal> {
        if let Some(before) = before {
            self.remove(kind, before);
        }
        self.add(kind, bytes);
        let used = self.0.get(&kind).copied().unwrap_or_default();
        let is_beyond = used.count > kind.count_max() || used.bytes > OBJECTS_BYTES_MAX;
        let grows = before.is_none_or(|before| bytes > before);
        if is_beyond && grows { Err(ObjectRefusal::QuotaReached) } else { Ok(()) }
    }

    /// Returns the largest number of objects of any kind other than keys, and the largest size of
    /// any kind in bytes.
    pub(super) fn largest(&self) -> (u64, u64) {
        let others = self.0.iter().filter(|(kind, _)| **kind != ObjectKind::Key);
        let count = others.map(|(_, used)| used.count).max();
        let bytes = self.0.values().map(|used| used.bytes).max();
        (count.unwrap_or(0), bytes.unwrap_or(0))
    }
}
