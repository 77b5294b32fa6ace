//! The oracle: a world is the expected contents of the store, and predicts its answers.
//!
//! After a failed write and a restart, the write may be present or not, so several worlds are
//! possible. Each answer and each comparison removes the worlds that disagree, and the history
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
    store::{LastSample, NewReading},
};

pub(crate) use possible::{Outcome, Request, Worlds};
pub(crate) use senders::Verdict;
use senders::{Numbers, Times};
use slots::ExpectedSlot;

use crate::{
    counters::NaiveCounter,
    histograms::{self, FoundHistograms},
    levels,
    rounds::counts_from,
};

/// A sample that the store counts.
#[derive(Debug, Clone, PartialEq)]
struct CountedSample {
    series: SeriesId,
    at: i64,
    value: f64,
    /// The time at which the sample was accepted, or at which a later late reading of the series
    /// was accepted.
    accepted: UnixMillis,
    /// The bits of the granularities that have kept the sample without interruption.
    kept: u8,
}

impl CountedSample {
    fn is_of(&self, series: SeriesId, at: UnixMillis) -> bool {
        self.series == series && self.at == at.0
    }
}

/// A counter. The flags are true if the store guarantees the growth at each reading, and that of
/// the histograms.
#[derive(Debug, Clone, PartialEq)]
struct CountedCounter {
    naive: NaiveCounter,
    is_guaranteed_so_far: bool,
    are_histograms_guaranteed: bool,
}

impl Default for CountedCounter {
    fn default() -> Self {
        Self {
            naive: NaiveCounter::default(),
            is_guaranteed_so_far: true,
            are_histograms_guaranteed: true,
        }
    }
}

/// The time of the last sample of a series, and of the marker that ended it.
#[derive(Debug, Clone, Default, PartialEq)]
struct SeriesEnd {
    last_at: Option<i64>,
    /// The latest time of a stale marker.
    ended_at: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
struct Series {
    /// The key of the series, or `None` if the series was deleted.
    key: Option<SeriesKey>,
    kind: Kind,
    end: SeriesEnd,
    /// The time of the last sample before the kind changed.
    last_before_change: Option<i64>,
}

/// One possible state of the store.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct World {
    /// The series, by ID.
    series: Vec<Series>,
    samples: Vec<CountedSample>,
    senders: BTreeMap<Arc<str>, Numbers>,
    times: BTreeMap<SeriesId, Times>,
    counters: BTreeMap<SeriesId, CountedCounter>,
}

/// The result of a comparison without a difference.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Comparison {
    /// The number of ended series.
    pub(crate) ends: u64,
    /// The number of slots of counters whose growth was compared.
    pub(crate) increases: u64,
    /// The number of slots of histograms whose totals were compared.
    pub(crate) totals: u64,
    /// True if the store contains a request that failed.
    pub(crate) has_failed_request: bool,
}

/// The contents of the store that are compared.
pub(crate) struct StoreContents {
    /// The keys of series by ID, `None` for a deleted series.
    pub(crate) keys: Vec<Option<SeriesKey>>,
    pub(crate) last: Vec<(SeriesId, Option<LastSample>)>,
    pub(crate) granularity: Granularity,
    /// The start of the compared range.
    pub(crate) from: i64,
    /// The exclusive end of the compared range.
    pub(crate) to: i64,
    /// Ranges that the store reports as incomplete.
    pub(crate) holes: Vec<Range<i64>>,
    /// The compared series.
    pub(crate) compared: BTreeSet<SeriesId>,
    pub(crate) slots: Vec<(SeriesId, i64, Cell)>,
    /// The histograms, unless damage may have removed some of them.
    pub(crate) histograms: Option<FoundHistograms>,
}

impl World {
    /// Registers series; returns their IDs.
    fn define(&mut self, definitions: &[SeriesInfo]) -> Vec<SeriesId> {
        let id_of = |definition: &SeriesInfo| {
            let key = Some(&definition.key);
            let existing = self.series.iter().position(|series| series.key.as_ref() == key);
            let index = existing.unwrap_or_else(|| {
                let (key, kind) = (key.cloned(), definition.kind);
                self.series.push(Series {
                    key,
                    kind,
                    end: SeriesEnd::default(),
                    last_before_change: None,
                });
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
        let (key, last_before_change) =
            (old.key.take(), old.last_before_change.max(old.end.last_at));
        self.series.push(Series {
            key,
            kind: info.kind,
            end: SeriesEnd::default(),
            last_before_change,
        });
        let is_of_old_series = |sample: &&mut CountedSample| sample.series.0 as usize == index;
        self.samples.iter_mut().filter(is_of_old_series).for_each(|sample| sample.series = new);
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
            self.counters.entry(*id).or_default().is_guaranteed_so_far = false;
        }
    }

    /// Returns true when all samples of a series and time are kept at some level.
    fn knows(&self, series: SeriesId, at: UnixMillis) -> bool {
        let mut of_time = self.samples.iter().filter(|sample| sample.is_of(series, at));
        of_time.all(|sample| sample.kept > 0)
    }

    /// Replaces the only sample of a series and time, or adds it.
    fn replace(&mut self, reading: &NewReading, set: &GranularitySet, now: UnixMillis) -> Outcome {
        let NewReading { series, at, value } = *reading;
        let mut of_time = self.samples.iter_mut().filter(|sample| sample.is_of(series, at));
        if let Some(sample) = of_time.next() {
            sample.value = value;
            return if of_time.next().is_none() { Outcome::Replaced } else { Outcome::Changed(2) };
        }
        let batch = AcceptedBatch {
            series: vec![series],
            times: vec![at.0],
            values: vec![value],
            ..AcceptedBatch::default()
        };
        self.accept(&batch, set, now);
        Outcome::Added
    }

    fn accept(&mut self, batch: &AcceptedBatch, set: &GranularitySet, now: UnixMillis) -> Verdict {
        if batch.values.is_empty() {
            // A refused batch changes nothing, not even the state of its sender.
            let existing = batch.number().and_then(|number| {
                Some(self.senders.get(&number.sender)?.clone().note(number.epoch, number.seq))
            });
            return existing
                .filter(|existing| *existing == Verdict::Duplicate)
                .unwrap_or(Verdict::Empty);
        }
        if let Some(number) = batch.number() {
            let numbers = self.senders.entry(number.sender.clone()).or_default();
            let verdict = numbers.note(number.epoch, number.seq);
            if verdict != Verdict::Accepted(0) {
                return verdict;
            }
        }
        let mut not_counted = 0;
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
                not_counted += 1;
                continue;
            }
            let is_counter = kind.of_counts() == Kind::Counter;
            let is_late_reading = is_counter && end.last_at > Some(at);
            end.last_at = end.last_at.max(Some(at));
            if is_counter {
                let counting = self.counters.entry(*series).or_default();
                counting.is_guaranteed_so_far &= counting.naive.is_guaranteed(at);
                counting.are_histograms_guaranteed &=
                    counting.naive.is_guaranteed_for_histograms(at);
                let start = batch.starts.get(index).copied().unwrap_or(0);
                counting.naive.add_reading(at, value, start, counts_from[index]);
            }
            let keeping = set.iter().filter(|level| level.keeps(UnixMillis(at), now));
            let kept = keeping.fold(0, |bits, level| bits | levels::width_bit(level));
            self.samples.push(CountedSample { series: *series, at, value, accepted: now, kept });
            if is_late_reading {
                self.expire_series(Some(*series), set, now);
            }
        }
        Verdict::Accepted(not_counted)
    }

    /// Returns for each sample the earliest start of its counter with which a first reading counts
    /// in full.
    fn counts_from(
        &self,
        batch: &AcceptedBatch,
        set: &GranularitySet,
        now: UnixMillis,
    ) -> Vec<i64> {
        let time = |index: usize| batch.time(index);
        let last_before_change = |(index, series): (usize, &SeriesId)| {
            (time(index).0, self.series[series.0 as usize].end.last_at)
        };
        let all: Vec<_> = batch.series.iter().enumerate().map(last_before_change).collect();
        let counts_from = |index: usize| {
            let finest = set.finest_keeping(time(index), now).unwrap_or(GranularityIndex::FINEST);
            counts_from(&all, time(index).0, set[finest].slot_start(time(index)).0)
        };
        (0..all.len()).map(counts_from).collect()
    }

    /// Notes that the store runs with these granularities now: data past their retention may be
    /// deleted. Until a checkpoint, the time of acceptance decides, which may be later than now.
    fn expire(&mut self, set: &GranularitySet, now: UnixMillis) {
        self.expire_series(None, set, now);
    }

    /// Expires the samples of one series or of all. A late reading also changes the slot of the
    /// next reading, in the granularities that keep that time when the late reading arrives.
    fn expire_series(&mut self, only: Option<SeriesId>, set: &GranularitySet, now: UnixMillis) {
        let is_affected =
            |sample: &&mut CountedSample| only.is_none_or(|series| sample.series == series);
        for sample in self.samples.iter_mut().filter(is_affected) {
            let (at, now) = (UnixMillis(sample.at), now.max(sample.accepted));
            if only.is_some() {
                sample.accepted = now;
            }
            let keeping = set.iter().filter(|level| level.keeps(at, now));
            sample.kept &= keeping.fold(0, |bits, level| bits | levels::width_bit(level));
        }
    }

    /// Compares the world with the store; the error describes the first difference.
    fn check(&self, found: &StoreContents) -> Result<Comparison, String> {
        let ends = self.check_series(found)?;
        let (increases, totals) = self.check_slots(found)?;
        Ok(Comparison { ends, increases, totals, has_failed_request: false })
    }

    fn check_series(&self, found: &StoreContents) -> Result<u64, String> {
        let mut ends = 0;
        let keys = self.series.iter().map(|series| &series.key);
        if !keys.eq(&found.keys) {
            let existing: Vec<_> = self.series.iter().map(|series| &series.key).collect();
            return Err(format!("series {:?} instead of {existing:?}", found.keys));
        }
        for (id, last) in &found.last {
            let Series { end, last_before_change, .. } = &self.series[id.0 as usize];
            let ended_at = end.ended_at.filter(|_| end.ended_at >= end.last_at);
            ends += u64::from(ended_at.is_some());
            let compared = last.map(|last| (last.at.0, last.ended_at.map(|at| at.0)));
            if compared != end.last_at.or(*last_before_change).map(|at| (at, ended_at)) {
                return Err(format!("last sample of {id:?} {last:?} instead of {end:?}"));
            }
        }
        Ok(ends)
    }

    /// Returns the numbers of increases and of totals of histograms that were compared.
    fn check_slots(&self, found: &StoreContents) -> Result<(u64, u64), String> {
        let (mut increases, mut totals) = (0, 0);
        let StoreContents { granularity, compared, .. } = found;
        let level_bit = levels::width_bit(granularity);
        let mut expected: BTreeMap<(SeriesId, i64), ExpectedSlot> = BTreeMap::new();
        for sample in self.samples.iter().filter(|sample| compared.contains(&sample.series)) {
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
                slot.allow_loss();
            }
        }
        for (id, start, cell) in &found.slots {
            let kind = self.series[id.0 as usize].kind;
            let slot = expected.remove(&(*id, *start)).unwrap_or_default();
            let describe_slot = || {
                let at = UnixMillis(*start);
                format!("series {} ({kind:?}) at {at} of {}: {cell:?}", id.0, granularity.name)
            };
            let describe = |wrong| format!("{}: {wrong}", describe_slot());
            increases += u64::from(slot.check(cell, kind.of_counts()).map_err(describe)?);
            if let Some(histograms) = &found.histograms
                && cell.n > 0
            {
                let total = slot.total_of_histograms(kind, cell.n);
                let histograms = histograms.get(&(*id, *start));
                let checked = histograms::check(kind, cell, total.as_deref(), histograms);
                totals += u64::from(checked.map_err(describe)?);
            }
        }
        match expected.into_iter().find(|(_, slot)| !slot.may_be_empty()) {
            None => Ok((increases, totals)),
            Some(((id, start), slot)) => {
                let (name, at) = (&granularity.name, UnixMillis(start));
                Err(format!("nothing for series {} at {at} of {name}: {slot:?}", id.0))
            }
        }
    }

    /// Adds the expected growth of counters to their slots.
    fn add_increases(
        &self,
        StoreContents { granularity, compared, .. }: &StoreContents,
        expected: &mut BTreeMap<(SeriesId, i64), ExpectedSlot>,
    ) {
        let guaranteed_counters =
            self.counters.iter().filter(|(_, counting)| counting.is_guaranteed_so_far);
        for (series, CountedCounter { naive, are_histograms_guaranteed, .. }) in
            guaranteed_counters.filter(|(id, _)| compared.contains(id))
        {
            let is_histogram = self.series[series.0 as usize].kind == Kind::Histogram;
            let slot_of = |at: i64| (*series, granularity.slot_start(UnixMillis(at)).0);
            for (at, increase) in naive.increases() {
                expected.entry(slot_of(at)).and_modify(|slot| slot.add_increase(increase));
            }
            for (at, value, since) in
                naive.growths().filter(|_| is_histogram && *are_histograms_guaranteed)
            {
                expected.entry(slot_of(at)).and_modify(|slot| slot.add_growth(value, since));
            }
            for (at, rate) in naive.rates() {
                expected.entry(slot_of(*at)).and_modify(|slot| slot.add_rate(*rate));
            }
        }
    }
}
