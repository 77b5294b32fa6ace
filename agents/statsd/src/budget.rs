//! Bytes that an aggregation may take, counted before they are taken.

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    used: usize,
    max: usize,
}

impl Budget {
    /// All of `max` bytes are free.
    pub(crate) fn new(max: usize) -> Self {
        Self { used: 0, max }
    }

    /// False when so many bytes are not free; then none are taken.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.max - self.used;
        if fits {
            self.used += bytes;
        }
        fits
    }

    /// Begins anew with what is still held, which was taken before.
    pub(crate) fn renew(&mut self, held: usize) {
        self.used = held.min(self.max);
    }

    /// Whether more than half of it is used.
    pub(crate) fn is_scarce(&self) -> bool {
        self.used > self.max / 2
    }
}
