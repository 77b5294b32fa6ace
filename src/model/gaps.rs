//! What a granularity lacks of the time that it keeps.
//!
//! The store knows it, the query plan goes round it. Must never know: why something is missing.

use std::ops::Range;

use super::UnixMillis;

/// Which times of a granularity do not have all samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gaps {
    /// Slots that begin before this may hold less than those of other granularities.
    pub complete_since: UnixMillis,
    /// No slot that ends after this has all samples: it took none any more. `UnixMillis::MAX` while
    /// it does.
    pub complete_until: UnixMillis,
    /// Where documents are damaged or missing.
    pub holes: Vec<Range<UnixMillis>>,
}

impl Gaps {
    /// Of a granularity that lacks nothing.
    pub const NONE: Self = Self {
        complete_since: UnixMillis::EARLIEST,
        complete_until: UnixMillis::MAX,
        holes: Vec::new(),
    };
}
