//! Quotas of objects: each kind has its own quota in each project, so that no kind and no project
//! takes space from another. The use is counted in memory; after a failed change, it is counted in
//! the file again.
//!
//! Must never know: the content of objects.

use std::collections::BTreeMap;

use super::{OBJECTS_BYTES_MAX, ObjectKind, ObjectRefusal};

/// The number of objects of each kind in each project, and their bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct QuotaUse(BTreeMap<(Box<str>, ObjectKind), Used>);

/// A project, and a kind of its objects.
pub(super) type QuotaKey<'a> = (&'a str, ObjectKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Used {
    count: u64,
    bytes: u64,
}

impl QuotaUse {
    fn of(&mut self, (project, kind): QuotaKey<'_>) -> &mut Used {
        self.0.entry((project.into(), kind)).or_default()
    }

    /// Counts an existing row.
    pub(super) fn add(&mut self, of: QuotaKey<'_>, bytes: usize) {
        let used = self.of(of);
        used.count += 1;
        used.bytes += bytes as u64;
    }

    /// Notes that a row is removed.
    pub(super) fn remove(&mut self, of: QuotaKey<'_>, bytes: usize) {
        let used = self.of(of);
        used.count = used.count.saturating_sub(1);
        used.bytes = used.bytes.saturating_sub(bytes as u64);
    }

    /// Replaces a row of `before` bytes with a row of `bytes`; a row that does not grow always
    /// fits.
    pub(super) fn put(
        &mut self,
        of: QuotaKey<'_>,
        before: Option<usize>,
        bytes: usize,
    ) -> Result<(), ObjectRefusal> {
        if let Some(before) = before {
            self.remove(of, before);
        }
        self.add(of, bytes);
        let used = *self.of(of);
        let is_beyond = used.count > of.1.count_max() || used.bytes > OBJECTS_BYTES_MAX;
        let grows = before.is_none_or(|before| bytes > before);
        if is_beyond && grows { Err(ObjectRefusal::QuotaReached) } else { Ok(()) }
    }

    /// Returns the largest number of objects of any kind other than keys, and the largest size of
    /// any kind in bytes.
    pub(super) fn largest(&self) -> (u64, u64) {
        let others = self.0.iter().filter(|((_, kind), _)| *kind != ObjectKind::Key);
        let count = others.map(|(_, used)| used.count).max();
        let bytes = self.0.values().map(|used| used.bytes).max();
        (count.unwrap_or(0), bytes.unwrap_or(0))
    }
}
