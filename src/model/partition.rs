//! Which partition: a granularity and a time.
//!
//! Must never know: files.

use super::UnixMillis;

/// What tells partitions apart: the granularity of one, and its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId {
    /// Index of the granularity, finest first.
    pub level: usize,
    /// When the partition begins.
    pub start: UnixMillis,
}
