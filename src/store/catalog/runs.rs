//! The runs of a batch: samples, one after the other, that fall into the same slot.
//!
//! Must never know: what becomes of the samples.

use std::ops::Range;

use crate::model::{AcceptedBatch, GranularityIndex, GranularitySet, Keeping, UnixMillis};

/// Samples of a batch, one after the other, that fall into the same slot.
pub(super) struct Run {
    pub(super) samples: Range<usize>,
    /// The finest granularity that keeps them, and their slot there; of the finest of all when none does.
    pub(super) finest: Option<GranularityIndex>,
    pub(super) slot_start: UnixMillis,
}

/// The runs of a batch. One ends where the slot does, or a finer granularity keeps what comes: slots need
/// not lie within one partition of a finer one.
pub(super) fn runs<'a>(
    granularities: &'a GranularitySet,
    keeping: &'a Keeping,
    batch: &'a AcceptedBatch,
) -> impl Iterator<Item = Run> + 'a {
    let mut next = 0;
    std::iter::from_fn(move || {
        let from = next;
        if from == batch.values.len() {
            return None;
        }
        let at = batch.time(from);
        let finest = keeping.finest(at);
        let granularity = &granularities[finest.unwrap_or(GranularityIndex::FINEST)];
        let slot_start = granularity.slot_start(at);
        let end = keeping.same_until(at).min(slot_start.plus(granularity.width_ms));
        let slot = slot_start.0..end.0;
        // A single time is that of all samples.
        let others = batch.times.iter().skip(from);
        let length = others.take_while(|time| slot.contains(time)).count();
        next = if batch.times.len() == 1 { batch.values.len() } else { from + length };
        Some(Run { samples: from..next, finest, slot_start })
    })
}
