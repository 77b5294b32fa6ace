//! The identity of a partition.
//!
//! Must never know: files.

use super::{GranularityIndex, UnixMillis};

/// The identity of a partition: its granularity and its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId {
    /// The granularity.
    pub granularity: GranularityIndex,
    /// The start of the partition.
    pub start: UnixMillis,
}
