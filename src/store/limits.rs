//! Limits of the store's content.
//!
//! Must never know: the senders that exceed a limit, the responses to them.

/// Limits of the store's content, and the time after which senders count as idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// The maximum number of series.
    pub series_max: usize,
    /// The maximum number of series that one sender may register.
    pub sender_series_max: usize,
    /// The maximum number of senders of each project that number their batches.
    pub senders_max: usize,
    /// The milliseconds without an accepted batch after which a project with the maximum number of
    /// senders forgets a sender.
    pub sender_idle_ms: i64,
}

impl Default for StoreLimits {
    /// Returns the limits of the format.
    fn default() -> Self {
        let most = u32::MAX as usize;
        Self {
            series_max: most,
            sender_series_max: most,
            senders_max: most,
            sender_idle_ms: i64::MAX,
        }
    }
}
