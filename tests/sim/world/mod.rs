//! The oracle: a world is the expected contents of the store, and predicts its answers.
//!
//! A failed write may be present after the next start or not. Several worlds are therefore possible
//! for a while; each answer and each comparison removes the worlds that disagree, and the history
//! fails when no world is left.

mod possible;
mod senders;
mod slots;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use granary::{
    model::{
        AcceptedBatch, Cell, Granularity, GranularityIndex, GranularitySet, Kind, SeriesId,
        SeriesInfo, SeriesKey, UnixMillis, counter,
    },
    store::LastSample,
};

pub(crate) use possible::{Outcome, Request, Worlds};
pub(crate) use senders::Verdict;
use senders::{Numbers, Times};
use slots::Expected;

use crate::{counters::NaiveCounter, levels, rounds::counts_from};

/// A sample that counts.
#[derive(Debug, Clone, PartialEq)]
struct Counted {
    series: SeriesId,
    at: i64,
    value: f64,
    /// The time of acceptance, or of a later late reading of the series.
    accepted: UnixMillis,
    /// The bits of the granularities that have contained it ever since.
    kept: u8,
}

/// A counter, and whether the store guarantees the growth at each of its readings.
#[derive(Debug, Clone, PartialEq)]
struct Counting {
    naive: NaiveCounter,
    is_promised: bool,
}

impl Default for Counting {
    fn default() -> Self {
        Self { naive: NaiveCounter::default(), is_promised: true }
    }
}

/// The end of a series.
#[derive(Debug, Clone, Default, PartialEq)]
struct End {
    last_at: Option<i64>,
    /// The latest time at which its sender ended the series.
    ended_at: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
struct Series {
    /// The series; `None` when deleted.
    key: Option<SeriesKey>,
    kind: Kind,
    end: End,
    /// The time of the last sample before the kind changed.
    before: Option<i64>,
}

/// One possible content of the store.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct World {
    /// Series by id.
    series: Vec<Series>,
    samples: Vec<Counted>,
    senders: BTreeMap<Arc<str>, Numbers>,
    times: BTreeMap<SeriesId, Times>,
    counters: BTreeMap<SeriesId, Counting>,
}

/// Counts of the comparisons.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checked {
    /// Ended series.
    pub(crate) ends: u64,
    /// Slots of counters whose growth is guaranteed.
    pub(crate) increases: u64,
    /// Samples that are present although their request failed.
    pub(crate) is_other: bool,
}

/// The visible contents of the store.
pub(crate) struct Found {
    /// Series by id; `None` when deleted.
    pub(crate) keys: Vec<Option<SeriesKey>>,
    pub(crate) last: Vec<(SeriesId, Option<LastSample>)>,
    pub(crate) granularity: Granularity,
    /// The start of the visible range.
    pub(crate) from: i64,
    /// The exclusive end of the visible range.
    pub(crate) to: i64,
    /// Ranges that the store reports as incomplete.
    pub(crate) holes: Vec<Range<i64>>,
    /// The compared series.
    pub(crate) shown: BTreeSet<SeriesId>,
    pub(crate) slots: Vec<(SeriesId, i64, Cell)>,
}

impl World {
    /// Registers series; returns their ids.
    fn define(&mut self, definitions: &[SeriesInfo]) -> Vec<SeriesId> {
        let id_of = |definition: &SeriesInfo| {
            let key = Some(&definition.key);
            let known = self.series.iter().position(|series| series.key.as_ref() == key);
            let index = known.unwrap_or_else(|| {
                let (key, kind) = (key.cloned(), definition.kind);
                self.series.push(Series { key, kind, end: End::default(), before: None });
                self.series.len() - 1
            });
            SeriesId(index as u32)
        };
        definitions.iter().map(id_of).collect()
    }

    /// Changes the kind of a series: its samples move to a new series.
    fn change_kind(&mut self, info: &SeriesInfo) -> Vec<SeriesId> {
        let new = SeriesId(self.series.len() as u32);
        let has_the_key = |series: &Series| series.key.as_ref() == Some(&info.key);
        let Some(index) = self.series.iter().position(has_the_key) else {
            return Vec::new();
        };
        let old = &mut self.series[index];
        if old.kind == info.kind {
            return vec![SeriesId(index as u32)];
        }
        let (key, before) = (old.key.take(), old.before.max(old.end.last_at));
        self.series.push(Series { key, kind: info.kind, end: End::default(), before });
        let of_old = |sample: &&mut Counted| sample.series.0 as usize == index;
        self.samples.iter_mut().filter(of_old).for_each(|sample| sample.series = new);
        vec![new]
    }

    fn change(&mut self, updates: &[(SeriesId, Option<SeriesKey>)]) {
        for (id, key) in updates {
            self.series[id.0 as usize].key.clone_from(key);
        }
    }

    /// Erases samples. Later readings of counters next to them may add no growth.
    fn erase(&mut self, series: &[SeriesId], range: &Range<UnixMillis>) {
        self.samples.retain(|sample| {
            !(series.contains(&sample.series) && range.contains(&UnixMillis(sample.at)))
        });
        for id in series {
            self.counters.entry(*id).or_default().is_promised = false;
        }
    }

    fn accept(&mut self, batch: &AcceptedBatch, set: &GranularitySet, now: UnixMillis) -> Verdict {
        if batch.values.is_empty() {
            // A refused batch changes nothing, not even the state of its sender.
            let known = batch.number().and_then(|number| {
                Some(self.senders.get(&number.sender)?.clone().note(number.epoch, number.seq))
            });
            return known.filter(|known| *known == Verdict::Duplicate).unwrap_or(Verdict::Empty);
        }
        if let Some(number) = batch.number() {
            let numbers = self.senders.entry(number.sender.clone()).or_default();
            let verdict = numbers.note(number.epoch, number.seq);
            if verdict != Verdict::Accepted(0) {
                return verdict;
            }
        }
        let mut uncounted = 0;
        let counts_from = self.counts_from(batch, set, now);
        for (index, series) in batch.series.iter().enumerate() {
            let at = batch.times[index.min(batch.times.len() - 1)];
            let value = batch.values[index];
            let Series { end, kind, .. } = &mut self.series[series.0 as usize];
            if counter::is_stale_marker(value) {
                end.ended_at = end.ended_at.max(Some(at));
                continue;
            }
            if let Some(window_ms) = batch.window_ms()
                && !self.times.entry(*series).or_default().note(at, window_ms)
            {
                uncounted += 1;
                continue;
            }
            let is_late_reading = *kind == Kind::Counter && end.last_at > Some(at);
            end.last_at = end.last_at.max(Some(at));
            if *kind == Kind::Counter {
                let counting = self.counters.entry(*series).or_default();
                counting.is_promised &= counting.naive.is_guaranteed(at);
                let start = batch.starts.get(index).copied().unwrap_or(0);
                counting.naive.read(at, value, start, counts_from[index]);
            }
            let keeping = set.iter().filter(|level| level.keeps(UnixMillis(at), now));
            let kept = keeping.fold(0, |bits, level| bits | levels::bit(level));
            self.samples.push(Counted { series: *series, at, value, accepted: now, kept });
            if is_late_reading {
                self.expire_series(Some(*series), set, now);
            }
        }
        Verdict::Accepted(uncounted)
    }

    /// The earliest start of each sample's counter with which a first reading counts in full.
    fn counts_from(
        &self,
        batch: &AcceptedBatch,
        set: &GranularitySet,
        now: UnixMillis,
    ) -> Vec<i64> {
        let time = |index: usize| batch.time(index);
        let before = |(index, series): (usize, &SeriesId)| {
            (time(index).0, self.series[series.0 as usize].end.last_at)
        };
        let all: Vec<_> = batch.series.iter().enumerate().map(before).collect();
        let counts_from = |index: usize| {
            let finest = set.finest_keeping(time(index), now).unwrap_or(GranularityIndex::FINEST);
            counts_from(&all, time(index).0, set[finest].slot_start(time(index)).0)
        };
        (0..all.len()).map(counts_from).collect()
    }

    /// Notes that the store runs with these granularities now: data past their retention may be
    /// deleted. Until a checkpoint, retention is decided by the time of acceptance, which may be
    /// later by the machine's clock.
    fn expire(&mut self, set: &GranularitySet, now: UnixMillis) {
        self.expire_series(None, set, now);
    }

    /// A late reading changes its neighbour's slot in the granularities that keep the neighbour's
    /// time when the reading arrives, also when a start with other granularities replays it.
    fn expire_series(&mut self, only: Option<SeriesId>, set: &GranularitySet, now: UnixMillis) {
        let is_affected = |sample: &&mut Counted| only.is_none_or(|series| sample.series == series);
        for sample in self.samples.iter_mut().filter(is_affected) {
            let (at, now) = (UnixMillis(sample.at), now.max(sample.accepted));
            if only.is_some() {
                sample.accepted = now;
            }
            let keeping = set.iter().filter(|level| level.keeps(at, now));
            sample.kept &= keeping.fold(0, |bits, level| bits | levels::bit(level));
        }
    }

    /// Compares the world with the store; an error describes the first difference.
    fn check(&self, found: &Found) -> Result<Checked, String> {
        let ends = self.check_series(found)?;
        let increases = self.check_slots(found)?;
        Ok(Checked { ends, increases, is_other: false })
    }

    fn check_series(&self, found: &Found) -> Result<u64, String> {
        let mut ends = 0;
        let keys = self.series.iter().map(|series| &series.key);
        if !keys.eq(&found.keys) {
            let known: Vec<_> = self.series.iter().map(|series| &series.key).collect();
            return Err(format!("series {:?} instead of {known:?}", found.keys));
        }
        for (id, last) in &found.last {
            let Series { end, before, .. } = &self.series[id.0 as usize];
            let ended_at = end.ended_at.filter(|_| end.ended_at >= end.last_at);
            ends += u64::from(ended_at.is_some());
            let shown = last.map(|last| (last.at.0, last.ended_at.map(|at| at.0)));
            if shown != end.last_at.or(*before).map(|at| (at, ended_at)) {
                return Err(format!("last sample of {id:?} {last:?} instead of {end:?}"));
            }
        }
        Ok(ends)
    }

    fn check_slots(&self, found: &Found) -> Result<u64, String> {
        let mut increases = 0;
        let Found { granularity, shown, .. } = found;
        let level_bit = levels::bit(granularity);
        let mut expected: BTreeMap<(SeriesId, i64), Expected> = BTreeMap::new();
        for sample in self.samples.iter().filter(|sample| shown.contains(&sample.series)) {
            let start = granularity.slot_start(UnixMillis(sample.at)).0;
            if (found.from..found.to).contains(&start) {
                let slot = expected.entry((sample.series, start)).or_default();
                slot.add((sample.at - start) as u32, sample.value, sample.kept & level_bit > 0);
            }
        }
        self.add_increases(found, &mut expected);
        for ((_, start), slot) in &mut expected {
            let end = start + granularity.width_ms;
            if found.holes.iter().any(|hole| hole.start < end && *start < hole.end) {
                slot.is_promised_no_more();
            }
        }
        for (id, start, cell) in &found.slots {
            let kind = self.series[id.0 as usize].kind;
            let slot = expected.remove(&(*id, *start)).unwrap_or_default();
            let place = || {
                let at = UnixMillis(*start);
                format!("series {} ({kind:?}) at {at} of {}: {cell:?}", id.0, granularity.name)
            };
            let checked = slot.check(cell, kind);
            increases += u64::from(checked.map_err(|wrong| format!("{}: {wrong}", place()))?);
        }
        match expected.into_iter().find(|(_, slot)| !slot.may_be_empty()) {
            None => Ok(increases),
            Some(((id, start), slot)) => {
                let (name, at) = (&granularity.name, UnixMillis(start));
                Err(format!("nothing for series {} at {at} of {name}: {slot:?}", id.0))
            }
        }
    }

    /// The expected growth of counters in each slot.
    fn add_increases(
        &self,
        Found { granularity, shown, .. }: &Found,
        expected: &mut BTreeMap<(SeriesId, i64), Expected>,
    ) {
        let promised = self.counters.iter().filter(|(_, counting)| counting.is_promised);
        for (series, Counting { naive, .. }) in promised.filter(|(id, _)| shown.contains(id)) {
            let place = |at: i64| (*series, granularity.slot_start(UnixMillis(at)).0);
            for (at, increase) in naive.increases() {
                expected.entry(place(at)).and_modify(|slot| slot.increase(increase));
            }
            for (at, rate) in naive.rates() {
                expected.entry(place(*at)).and_modify(|slot| slot.rate(*rate));
            }
        }
    }
}
