//! The sampling rounds of a sender up to a batch. They determine which first readings of counters
//! add the growth since the start of the counter.
//!
//! A sender that numbers its batches sends one round of readings per batch; other senders only show
//! which samples arrive together. The rounds are therefore the times at which the series of the
//! batch were last sampled, according to the catalog, and the times in the batch itself. The
//! decision precedes the journal's record, so a replay repeats no decision. Must never know: cells.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use crate::model::{
    AcceptedBatch, Kind, SeriesId, UnixMillis,
    counter::{START_COUNTS_MS, start_without_count},
    is_stale_marker,
};
use crate::store::states::SeriesStates;

/// A counter that began at most this many of its sender's intervals ago counts from its start, even
/// if there was a round since then.
const INTERVALS: i64 = 2;

/// The times at which the sender of a batch took samples.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// The times of the rounds, ascending.
    times: Vec<i64>,
    /// The shortest time since the previous sample of a series of the batch; `None` when all series
    /// are new.
    interval_ms: Option<i64>,
}

impl Rounds {
    /// Returns the rounds up to a batch; `before` returns the time of a series' last sample before
    /// the batch.
    fn of(batch: &AcceptedBatch, before: impl Fn(SeriesId) -> Option<UnixMillis>) -> Self {
        let mut rounds = Self::default();
        for (index, series) in batch.series.iter().enumerate() {
            let UnixMillis(at) = batch.time(index);
            rounds.add(at);
            if let Some(UnixMillis(before)) = before(*series) {
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
        // Series that are sampled together are adjacent in a batch.
        if !self.times.iter().rev().take(2).any(|time| *time == at) {
            self.times.push(at);
        }
    }

    /// Returns the earliest start of a counter whose first reading at `at` counts from that start:
    /// the previous round, or two intervals back if that is earlier. Without any known round, this
    /// is the start of the slot: all growth of a counter that began in the slot belongs to the
    /// slot.
    fn counts_from(&self, at: UnixMillis, slot_start: UnixMillis) -> i64 {
        if self.times.is_empty() {
            return slot_start.0;
        }
        let before = self.times.partition_point(|time| *time < at.0);
        let previous = before.checked_sub(1).map(|position| self.times[position]);
        let intervals = |interval: i64| at.0.saturating_sub(interval.saturating_mul(INTERVALS));
        let near = self.interval_ms.map(intervals);
        previous.into_iter().chain(near).min().unwrap_or(slot_start.0)
    }
}

/// Marks the start of each first reading that does not count, in batches that are accepted
/// together. A replay of the journal, which may already know later samples of some series,
/// therefore decides nothing.
pub(super) fn settle(
    batches: &mut Cow<'_, [AcceptedBatch]>,
    (is_accepted, has_start): (impl Fn(usize) -> bool, impl Fn(SeriesId) -> bool),
    states: &SeriesStates,
    slot_start: impl Fn(SeriesId, UnixMillis) -> UnixMillis,
) {
    let may_settle = |batch: &AcceptedBatch| {
        let mut all = 0..batch.series.len();
        !batch.starts.is_empty()
            && all.any(|index| may_count(batch, index) && is_fresh(states, batch, index))
    };
    if !batches.iter().any(may_settle) {
        return;
    }
    // Times of samples in earlier batches of the group, which the states do not include yet.
    let mut latest: HashMap<SeriesId, UnixMillis> = HashMap::new();
    for position in (0..batches.len()).filter(|position| is_accepted(*position)) {
        let before = |series: SeriesId| {
            let stored = states.get(series).filter(|state| !state.is_fresh());
            latest.get(&series).copied().max(stored.map(|state| state.last_at))
        };
        let batch = &batches[position];
        let starts = settled(batch, states, (before, &has_start), &slot_start);
        for (index, series) in batch.series.iter().enumerate() {
            if !is_stale_marker(batch.values[index]) {
                let last = latest.entry(*series).or_insert(UnixMillis::EARLIEST);
                *last = batch.time(index).max(*last);
            }
        }
        if let Some(starts) = starts {
            batches.to_mut()[position].starts = starts;
        }
    }
}

/// Returns the effective starts of a batch; `None` when no start changes.
fn settled(
    batch: &AcceptedBatch,
    states: &SeriesStates,
    (before, has_start): (impl Fn(SeriesId) -> Option<UnixMillis>, impl Fn(SeriesId) -> bool),
    slot_start: impl Fn(SeriesId, UnixMillis) -> UnixMillis,
) -> Option<Vec<i64>> {
    let rounds = Rounds::of(batch, &before);
    let mut seen = HashSet::new();
    let mut starts: Option<Vec<i64>> = None;
    for (index, series) in batch.series.iter().enumerate() {
        let is_reading = !is_stale_marker(batch.values[index]);
        let is_first = is_reading && before(*series).is_none() && seen.insert(*series);
        if !is_first || !may_count(batch, index) || !is_fresh(states, batch, index) {
            continue;
        }
        let (at, start) = (batch.time(index), batch.start(index));
        if !has_start(*series) || start < rounds.counts_from(at, slot_start(*series, at)) {
            let all = || (0..batch.series.len()).map(|index| batch.start(index)).collect();
            let starts = starts.get_or_insert_with(all);
            starts[index] = start_without_count(at.0, start);
        }
    }
    starts
}

/// Returns whether the counter of a sample began at most [`START_COUNTS_MS`] before the sample.
fn may_count(batch: &AcceptedBatch, index: usize) -> bool {
    let start = batch.start(index);
    let age = batch.time(index).0.saturating_sub(start);
    start != 0 && (1..=START_COUNTS_MS).contains(&age)
}

/// Returns whether a sample belongs to a counter without any reading.
fn is_fresh(states: &SeriesStates, batch: &AcceptedBatch, index: usize) -> bool {
    let state = states.get(batch.series[index]);
    state.is_some_and(|state| state.kind == Kind::Counter && state.is_fresh())
}
