//! The slots that the samples of a batch fall into.
//!
//! Samples of one time come one after the other, or those of a series, whose slots are those of the
//! series before in the same order. So the next slot is known before it is looked for. Must never
//! know: what becomes of the samples.

use std::ops::Range;

use crate::model::{GranularityIndex, GranularitySet, Keeping, UnixMillis};

/// Slots that are remembered, at most.
const MET_MAX: usize = 1024;

/// A slot that a sample fell into, and its value.
struct Met<T> {
    times: Range<i64>,
    finest: Option<GranularityIndex>,
    value: T,
}

/// The slots met so far.
pub(super) struct Slots<'a, T> {
    granularities: &'a GranularitySet,
    keeping: &'a Keeping,
    met: Vec<Met<T>>,
    last: usize,
}

/// The slot of a sample.
pub(super) struct Slot<'s, T> {
    pub(super) start: UnixMillis,
    /// The finest granularity that keeps it; the slot is of the finest of all when none does.
    pub(super) finest: Option<GranularityIndex>,
    /// The value that was made when the slot was met.
    pub(super) value: &'s mut T,
}

impl<'a, T> Slots<'a, T> {
    pub(super) fn new(granularities: &'a GranularitySet, keeping: &'a Keeping) -> Self {
        Self { granularities, keeping, met: Vec::new(), last: 0 }
    }

    /// The slot of a time; `make` is called when it was not met, or is not remembered.
    #[inline]
    pub(super) fn at(
        &mut self,
        at: UnixMillis,
        make: impl FnOnce(Option<GranularityIndex>, UnixMillis) -> T,
    ) -> Slot<'_, T> {
        let is_it =
            |place: &usize| self.met.get(*place).is_some_and(|met| met.times.contains(&at.0));
        let found = [self.last, self.last + 1, 0].into_iter().find(is_it);
        self.last = found.unwrap_or_else(|| self.meet(at, make));
        let Met { times, finest, value } = &mut self.met[self.last];
        Slot { start: UnixMillis(times.start), finest: *finest, value }
    }

    /// Remembers a slot behind the last one. It ends where another granularity keeps what comes:
    /// slots need not lie within one partition of a finer one.
    fn meet(
        &mut self,
        at: UnixMillis,
        make: impl FnOnce(Option<GranularityIndex>, UnixMillis) -> T,
    ) -> usize {
        let finest = self.keeping.finest(at);
        let granularity = &self.granularities[finest.unwrap_or(GranularityIndex::FINEST)];
        let start = granularity.slot_start(at);
        let end = self.keeping.same_until(at).min(start.plus(granularity.width_ms));
        let met = Met { times: start.0..end.0, finest, value: make(finest, start) };
        let place = if self.met.is_empty() { 0 } else { (self.last + 1) % MET_MAX };
        match self.met.get_mut(place) {
            Some(oldest) => *oldest = met,
            None => self.met.push(met),
        }
        place
    }
}
