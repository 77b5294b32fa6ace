//! What the store is not yet expected to withstand is off.

/// After a fault that is over, the next operation succeeds, without a restart.
pub(crate) const RECOVERS_AT_ONCE: bool = true;
/// A sync fails, and the machine lives.
pub(crate) const FAILED_SYNCS: bool = true;
/// Reads fail.
pub(crate) const FAILED_READS: bool = true;
/// Groups of several batches, jumps of thousands of numbers, late epochs.
pub(crate) const WILD_NUMBERS: bool = true;
/// Partitions that do not end where slots of a coarser granularity do.
pub(crate) const RANDOM_LEVELS: bool = true;
/// Granularities change at restarts.
pub(crate) const LEVELS_CHANGE: bool = true;
/// Documents and partitions get other lengths at restarts.
pub(crate) const SPANS_CHANGE: bool = true;
/// Files of partitions vanish, or are damaged, while the store is closed.
pub(crate) const DAMAGE: bool = true;
/// A bit of a segment flips, also under late samples and restarts.
pub(crate) const FLIPPED_BITS: bool = true;
/// The clock goes far ahead and comes back.
pub(crate) const WILD_CLOCK: bool = true;
