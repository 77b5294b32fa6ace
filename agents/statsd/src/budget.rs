//! A memory budget, charged before memory is used.

/// The budget of an aggregation.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    used: usize,
    max: usize,
}

impl Budget {
    /// Creates a budget of `max` free bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self { used: 0, max }
    }

    /// Charges bytes. Returns false, and charges nothing, when the bytes are not free.
    pub(crate) fn charge(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.max - self.used;
        if fits {
            self.used += bytes;
        }
        fits
    }

    /// Resets the budget to the memory that is still in use.
    pub(crate) fn reset_to(&mut self, bytes: usize) {
        self.used = bytes.min(self.max);
    }

    /// Returns true when more than half of the budget is used.
    pub(crate) fn is_scarce(&self) -> bool {
        self.used > self.max / 2
    }
}
