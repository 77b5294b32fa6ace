//! Switches for kinds of faults and changes: a kind that the store does not withstand can be
//! switched off.

/// True if the next operation after a fault must succeed without a restart.
pub(crate) const RECOVERS_AT_ONCE: bool = true;
/// Failing syncs, after which the machine continues.
pub(crate) const FAILED_SYNCS: bool = true;
/// Failing reads.
pub(crate) const FAILED_READS: bool = true;
/// Groups of several batches, jumps of thousands of numbers, late epochs.
pub(crate) const WILD_NUMBERS: bool = true;
/// Partitions that do not end where slots of a coarser granularity end.
pub(crate) const RANDOM_LEVELS: bool = true;
/// Changes of granularities at restarts.
pub(crate) const LEVELS_CHANGE: bool = true;
/// Changes of the lengths of documents and partitions at restarts.
pub(crate) const SPANS_CHANGE: bool = true;
/// Files of partitions that disappear or are damaged while the store is closed.
pub(crate) const DAMAGE: bool = true;
/// Flipped bits in segments, even below late samples and across restarts.
pub(crate) const FLIPPED_BITS: bool = true;
/// A clock that jumps far ahead and back.
pub(crate) const WILD_CLOCK: bool = true;
