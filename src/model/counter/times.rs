//! The times of a counter's remembered readings, six bytes each.
//!
//! Must never know: values.

/// The number of remembered readings of a counter.
pub const READINGS_MAX: usize = 8;

/// The earliest time that can be stored; six bytes cover the following 8,900 years.
const EARLIEST: i64 = -(1 << 44);
const LATEST: i64 = EARLIEST + (1 << 48) - 1;

/// The times by index.
#[derive(Debug, Clone, Default)]
pub(super) struct Times {
    low: [u32; READINGS_MAX],
    high: [u16; READINGS_MAX],
}

impl Times {
    /// Returns true when a time can be stored.
    pub(super) fn can_store(at: i64) -> bool {
        (EARLIEST..=LATEST).contains(&at)
    }

    /// Returns the time at an index.
    #[inline]
    pub(super) fn get(&self, index: usize) -> i64 {
        let whole = u64::from(self.high[index]) << u32::BITS | u64::from(self.low[index]);
        whole as i64 + EARLIEST
    }

    /// Sets the time at an index to the nearest time that can be stored.
    #[inline]
    pub(super) fn set(&mut self, index: usize, at: i64) {
        let whole = (at.clamp(EARLIEST, LATEST) - EARLIEST) as u64;
        (self.low[index], self.high[index]) = (whole as u32, (whole >> u32::BITS) as u16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::UnixMillis;

    #[test]
    fn every_time_that_a_sample_may_have_can_be_stored() {
        let mut times = Times::default();
        for at in [UnixMillis::MIN.0, UnixMillis::MAX.0, 1, -1, 1 << 32, EARLIEST, LATEST] {
            assert!(Times::can_store(at));
            times.set(5, at);
            assert_eq!(times.get(5), at);
        }
        for (at, nearest) in [(i64::MIN, EARLIEST), (i64::MAX, LATEST), (LATEST + 1, LATEST)] {
            assert!(!Times::can_store(at));
            times.set(0, at);
            assert_eq!(times.get(0), nearest);
        }
    }
}
