//! The rounds of a batch's sender before it: they decide which first readings of counters count
//! from the start of their counter.
//!
//! A sender that numbers its batches sends a round of readings in each; of other senders no more is
//! known than which samples come together. So the rounds before a batch are the times at which the
//! series of the batch were sampled before, as the catalog remembers them, and those of the batch
//! itself: all of it follows from the journal. Must never know: cells.

use super::series_states::SeriesStates;
use crate::model::{AcceptedBatch, Kind, SeriesId, UnixMillis, counter::START_COUNTS_MS};

/// Intervals of a sender within which a counter counts from its start, whatever was read between.
const INTERVALS: i64 = 2;

/// When the sender of a batch took samples.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Ascending.
    times: Vec<i64>,
    /// The shortest time since a series of the batch was sampled before; `None` when all are new.
    interval_ms: Option<i64>,
}

impl Rounds {
    /// The rounds up to a batch that is not applied yet; none where no first reading asks for them.
    pub(super) fn of(batch: &AcceptedBatch, states: &SeriesStates) -> Self {
        if !(0..batch.series.len()).any(|index| may_count(batch, states, index)) {
            return Self::default();
        }
        let mut rounds = Self::default();
        for (index, series) in batch.series.iter().enumerate() {
            let UnixMillis(at) = batch.time(index);
            rounds.add(at);
            if let Some(state) = states.get(*series).filter(|state| !state.is_fresh()) {
                let UnixMillis(before) = state.last_at;
                rounds.add(before);
                let passed = at.saturating_sub(before);
                if passed > 0 {
                    let shortest = rounds.interval_ms.unwrap_or(i64::MAX);
                    rounds.interval_ms = Some(shortest.min(passed));
                }
            }
        }
        rounds.times.sort_unstable();
        rounds.times.dedup();
        rounds
    }

    fn add(&mut self, at: i64) {
        // Series that are sampled together lie together.
        if !self.times.iter().rev().take(2).any(|time| *time == at) {
            self.times.push(at);
        }
    }

    /// The earliest start from which a first reading at a time counts whole: the round before it,
    /// or two intervals back. Where nothing is known of the sender, that is the start of the slot:
    /// what began in it was counted in it.
    pub(super) fn counts_from(&self, at: UnixMillis, slot_start: UnixMillis) -> i64 {
        if self.times.is_empty() {
            return slot_start.0;
        }
        let before = self.times.partition_point(|time| *time < at.0);
        let previous = before.checked_sub(1).map(|place| self.times[place]);
        let intervals = |interval: i64| at.0.saturating_sub(interval.saturating_mul(INTERVALS));
        let near = self.interval_ms.map(intervals);
        previous.into_iter().chain(near).min().unwrap_or(slot_start.0)
    }
}

/// Whether a sample is the first reading of a counter that began lately.
fn may_count(batch: &AcceptedBatch, states: &SeriesStates, index: usize) -> bool {
    let start = batch.start(index);
    if start == 0 {
        return false;
    }
    let age = batch.time(index).0.saturating_sub(start);
    (1..=START_COUNTS_MS).contains(&age) && is_first(states, batch.series[index])
}

fn is_first(states: &SeriesStates, series: SeriesId) -> bool {
    states.get(series).is_some_and(|state| state.kind == Kind::Counter && state.is_fresh())
}
