//! Times for which a granularity lacks data that it should have.
//!
//! The store reports them, and the query plan avoids them. Must never know: the reasons.

use std::ops::Range;

use super::UnixMillis;

/// The times of a granularity that lack samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gaps {
    /// The time before which slots may contain fewer samples than the slots of other granularities.
    pub complete_since: UnixMillis,
    /// The time after which slots lack samples because the granularity stopped accepting them;
    /// `UnixMillis::MAX` while it accepts them.
    pub complete_until: UnixMillis,
    /// The spans with damaged or missing documents.
    pub holes: Vec<Range<UnixMillis>>,
}

impl Gaps {
    /// The gaps of a complete granularity: none.
    pub const NONE: Self = Self {
        complete_since: UnixMillis::EARLIEST,
        complete_until: UnixMillis::MAX,
        holes: Vec::new(),
    };
}
