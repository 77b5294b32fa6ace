//! Limits of what the store takes in.
//!
//! Must never know: who asks for more, and what is said then.

/// Limits of what the store takes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// Series of the whole store.
    pub series_max: usize,
    /// Series that one sender may make known.
    pub sender_series_max: usize,
    /// Senders that number their batches.
    pub senders_max: usize,
    /// A full store forgets senders without an accepted batch for this many milliseconds.
    pub sender_idle_ms: i64,
    /// A sender among several of the same samples counts as silent after this many milliseconds
    /// without one, and another sender counts.
    pub ha_failover_ms: i64,
}

impl Default for StoreLimits {
    /// The limits of the format.
    fn default() -> Self {
        let most = u32::MAX as usize;
        Self {
            series_max: most,
            sender_series_max: most,
            senders_max: most,
            sender_idle_ms: i64::MAX,
            ha_failover_ms: 30_000,
        }
    }
}
