//! The quota of samples per second: a token bucket that fills at the rate of the quota.
//!
//! Must never know: the sender of the samples, the clock.

/// The size of the bucket in seconds of samples, which may arrive at once after a silence.
const BURST_SECONDS: u64 = 10;

/// A quota of samples per second. Times are milliseconds of any clock that never goes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleQuota {
    per_second: u64,
    /// The thousandths of samples that may arrive now; negative after a large request.
    level: i64,
    at_ms: u64,
}

impl SampleQuota {
    /// Creates a quota whose bucket is full.
    pub fn new(per_second: u64) -> Self {
        let mut quota = Self { per_second, level: 0, at_ms: 0 };
        quota.level = quota.capacity();
        quota
    }

    /// Takes the samples of a request from the bucket; returns false, and takes nothing, while the
    /// bucket is empty. A request with more samples than the bucket has is accepted as a whole, so
    /// that its sender does not retry it forever, and later requests wait longer.
    pub fn take(&mut self, samples: u64, now_ms: u64) -> bool {
        let passed = now_ms.saturating_sub(self.at_ms);
        self.at_ms = self.at_ms.max(now_ms);
        let filled = i64::try_from(passed.saturating_mul(self.per_second)).unwrap_or(i64::MAX);
        self.level = self.level.saturating_add(filled).min(self.capacity());
        if self.level <= 0 {
            return false;
        }
        let taken = i64::try_from(samples.saturating_mul(1000)).unwrap_or(i64::MAX);
        self.level = self.level.saturating_sub(taken);
        true
    }

    fn capacity(&self) -> i64 {
        let thousandths = self.per_second.saturating_mul(BURST_SECONDS * 1000);
        i64::try_from(thousandths).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accepted_samples_follow_the_rate() {
        let mut quota = SampleQuota::new(100);
        assert!(quota.take(999, 0));
        assert!(quota.take(51, 0), "the bucket is not empty");
        assert!(!quota.take(1, 0));
        assert!(!quota.take(1, 500), "half a second pays the debt of 50 samples");
        assert!(quota.take(1, 510));
        let mut accepted = 0;
        for step in 0..1000 {
            accepted += if quota.take(10, 510 + step * 10) { 10 } else { 0 };
        }
        assert!((980..=1010).contains(&accepted), "{accepted} in 10 s");
        // After a long silence, at most the burst arrives at once.
        let mut burst = 0;
        while quota.take(10, 10_000_000) {
            burst += 10;
        }
        assert_eq!(burst, 1000);
        assert!(!quota.take(1, 0), "a clock that goes back fills nothing");
    }
}
