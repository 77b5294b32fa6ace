//! Which partition: a granularity and a time.
//!
//! Must never know: files.

use super::{GranularityIndex, UnixMillis};

/// What tells partitions apart: the granularity of one, and its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId {
    /// The granularity.
    pub granularity: GranularityIndex,
    /// When the partition begins.
    pub start: UnixMillis,
}
