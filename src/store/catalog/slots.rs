//! The slots that the samples of a batch fall into.
//!
//! A batch lists all samples of one time together, or all samples of one series together. In the
//! second case, each series usually has the slots of the previous series in the same order. Either
//! way, the next slot can be guessed. Must never know: what the samples are used for.

use std::ops::Range;

use crate::model::{GranularityIndex, GranularitySet, RetentionStarts, UnixMillis};

/// The maximum number of remembered slots.
const REMEMBERED_MAX: usize = 1024;

/// A slot with its value.
struct Remembered<T> {
    times: Range<i64>,
    finest: Option<GranularityIndex>,
    value: T,
}

/// The slots of a batch's samples. The latest slots are remembered.
pub(super) struct Slots<'a, T> {
    granularities: &'a GranularitySet,
    keeping: &'a RetentionStarts,
    remembered: Vec<Remembered<T>>,
    last: usize,
}

/// The slot of a sample.
pub(super) struct Slot<'s, T> {
    pub(super) start: UnixMillis,
    /// The finest granularity that keeps the sample; `None` when no granularity keeps it. The slot
    /// then has the width of the finest granularity.
    pub(super) finest: Option<GranularityIndex>,
    /// The value that `make` returned for the slot.
    pub(super) value: &'s mut T,
}

impl<'a, T> Slots<'a, T> {
    pub(super) fn new(granularities: &'a GranularitySet, keeping: &'a RetentionStarts) -> Self {
        Self { granularities, keeping, remembered: Vec::new(), last: 0 }
    }

    /// Returns the slot of a time. Calls `make` when the guess was wrong, to create the value of
    /// the slot.
    #[inline]
    pub(super) fn at(
        &mut self,
        at: UnixMillis,
        make: impl FnOnce(Option<GranularityIndex>, UnixMillis) -> T,
    ) -> Slot<'_, T> {
        let fits = |position: &usize| {
            self.remembered.get(*position).is_some_and(|slot| slot.times.contains(&at.0))
        };
        let found = [self.last, self.last + 1, 0].into_iter().find(fits);
        self.last = found.unwrap_or_else(|| self.remember(at, make));
        let Remembered { times, finest, value } = &mut self.remembered[self.last];
        Slot { start: UnixMillis(times.start), finest: *finest, value }
    }

    /// Remembers a slot after the last one. The slot ends early when another granularity becomes
    /// the finest within the slot.
    fn remember(
        &mut self,
        at: UnixMillis,
        make: impl FnOnce(Option<GranularityIndex>, UnixMillis) -> T,
    ) -> usize {
        let finest = self.keeping.finest(at);
        let granularity = &self.granularities[finest.unwrap_or(GranularityIndex::FINEST)];
        let start = granularity.slot_start(at);
        let end = self.keeping.same_until(at).min(start.plus(granularity.width_ms));
        let slot = Remembered { times: start.0..end.0, finest, value: make(finest, start) };
        let position =
            if self.remembered.is_empty() { 0 } else { (self.last + 1) % REMEMBERED_MAX };
        match self.remembered.get_mut(position) {
            Some(oldest) => *oldest = slot,
            None => self.remembered.push(slot),
        }
        position
    }
}
