//! The plan of replacing readings: the cells that change at each level.
//!
//! A cell stores no single readings. A reading can be replaced when it is the only reading of its
//! cell at the finest level that has it. Coarser cells are merged again from a finer level that has
//! all of their samples.
//!
//! Must never know: files; it reads views.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use super::cut::has_same_samples;
use crate::{
    model::{Cell, GranularityIndex, Kind, SeriesId, UnixMillis},
    store::{
        classes::ClassIndex,
        documents::{Columns, Slot},
        error::StoreError,
        handle::Store,
        journal::erasure_row::CutSlot,
    },
};

/// The maximum number of readings that one request may replace.
pub const REPLACED_MAX: usize = 1000;

/// A reading that replaces the stored one of the same series and time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewReading {
    /// The series.
    pub series: SeriesId,
    /// The time.
    pub at: UnixMillis,
    /// The new value.
    pub value: f64,
}

/// The effect of a new reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplaceVerdict {
    /// The reading replaced the stored one.
    Replaced,
    /// No reading of that time was stored, and the reading was added.
    Added,
    /// The stored reading stays.
    Refused(ReplaceRefusal),
}

/// The reason why a reading cannot be replaced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplaceRefusal {
    /// The series is a counter, or a series of histograms.
    #[error(
        "readings of a counter cannot be replaced, because the growth of later readings depends \
         on them: delete the samples of that time"
    )]
    Counter,
    /// The cell of the finest level has several samples.
    #[error(
        "the {level} slot from {} to {} has {n} samples, and no level keeps them one by one: \
         delete the samples of the slot, and send all of them again", times.start, times.end
    )]
    Several {
        /// The name of the level.
        level: String,
        /// The times of the slot.
        times: Range<UnixMillis>,
        /// The number of samples.
        n: u32,
    },
    /// The only sample of the slot has another time.
    #[error(
        "the sample of the {level} slot from {} to {} has the time {at}: use this time, or delete \
         that sample", times.start, times.end
    )]
    OtherTime {
        /// The name of the level.
        level: String,
        /// The times of the slot.
        times: Range<UnixMillis>,
        /// The time of the stored or added sample.
        at: UnixMillis,
    },
    /// No finer level has all samples of a coarser cell.
    #[error(
        "the {level} slot from {} to {} cannot be computed again, because no finer level has all \
         of its {n} samples: delete the samples of the slot, and send all of them again",
        times.start, times.end
    )]
    Incomplete {
        /// The name of the level.
        level: String,
        /// The times of the slot.
        times: Range<UnixMillis>,
        /// The number of samples.
        n: u32,
    },
}

/// Changed cells by level, start of the slot and series.
type ChangedCells = BTreeMap<(GranularityIndex, UnixMillis, SeriesId), Cell>;

/// The plan of replacing readings.
#[derive(Debug, Default)]
pub(crate) struct ReplacePlan {
    /// The verdict of each reading.
    pub(crate) verdicts: Vec<ReplaceVerdict>,
    /// The readings of times without a stored one, by series and slot.
    pub(crate) added: BTreeMap<(SeriesId, UnixMillis), NewReading>,
    changed: ChangedCells,
}

impl ReplacePlan {
    /// Returns the series with changed cells, ascending, and the changed slots.
    pub(crate) fn changes(&self, store: &Store) -> (Vec<SeriesId>, Vec<CutSlot>) {
        let series: BTreeSet<_> = self.changed.keys().map(|(_, _, series)| *series).collect();
        let mut cut: Vec<CutSlot> = Vec::new();
        for ((index, start, series), cell) in &self.changed {
            let level = &store.granularity(*index).name;
            match cut.last_mut() {
                Some(last) if last.level == *level && last.start == *start => {
                    last.cells.push((*series, *cell));
                }
                _ => {
                    let (level, cells) = (level.clone(), vec![(*series, *cell)]);
                    cut.push(CutSlot { level, start: *start, cells });
                }
            }
        }
        (series.into_iter().collect(), cut)
    }
}

impl Store {
    /// Plans the replacement of readings, in their order. While it plans, nothing may be accepted
    /// and no checkpoint may run.
    pub(crate) fn plan_replacement(
        &self,
        readings: &[NewReading],
        now: UnixMillis,
    ) -> Result<ReplacePlan, StoreError> {
        let mut plan = ReplacePlan::default();
        for reading in readings {
            let verdict = match self.replace(reading, &mut plan, now)? {
                Ok(true) => ReplaceVerdict::Replaced,
                Ok(false) => ReplaceVerdict::Added,
                Err(refusal) => ReplaceVerdict::Refused(refusal),
            };
            plan.verdicts.push(verdict);
        }
        Ok(plan)
    }

    /// Adds the effect of one reading to the plan. Returns true when it replaces a stored one.
    fn replace(
        &self,
        reading: &NewReading,
        plan: &mut ReplacePlan,
        now: UnixMillis,
    ) -> Result<Result<bool, ReplaceRefusal>, StoreError> {
        let dictionary = self.all_series();
        let whole = dictionary.whole_of(reading.series).unwrap_or(reading.series);
        let parts: Vec<_> = dictionary.parts(whole).iter().copied().chain([whole]).collect();
        let is_counter = |part: &SeriesId| {
            let kind = dictionary.kind(*part);
            kind.is_some_and(|kind| kind == Kind::Counter || kind.is_histogram())
        };
        let counters: Vec<_> = parts.iter().copied().filter(is_counter).collect();
        drop(dictionary);
        if counters.contains(&reading.series) {
            return Ok(Err(ReplaceRefusal::Counter));
        }
        let mut found = None;
        for part in parts {
            let step = ReplaceStep { store: self, plan, series: part, reading };
            match step.changes()? {
                Err(refusal) => return Ok(Err(refusal)),
                Ok(None) => {}
                Ok(Some(_)) if counters.contains(&part) => {
                    return Ok(Err(ReplaceRefusal::Counter));
                }
                Ok(Some((changes, times))) if found.is_none() => found = Some((changes, times)),
                Ok(Some((_, (level, times)))) => {
                    return Ok(Err(ReplaceRefusal::Several { level, times, n: 2 }));
                }
            }
        }
        if let Some((changes, _)) = found {
            plan.changed.extend(changes);
            return Ok(Ok(true));
        }
        Ok(self.add(reading, plan, now).map(|()| false))
    }

    /// Adds a reading of a time without a stored one.
    fn add(
        &self,
        reading: &NewReading,
        plan: &mut ReplacePlan,
        now: UnixMillis,
    ) -> Result<(), ReplaceRefusal> {
        let class = ClassIndex(self.class_at(reading.series, reading.at) as u8);
        let levels = &self.inner.classes.get(class).levels;
        let finest = levels.finest_keeping(reading.at, now).unwrap_or(GranularityIndex::FINEST);
        let level = &levels[finest];
        let start = level.slot_start(reading.at);
        let added = plan.added.entry((reading.series, start)).or_insert(*reading);
        if added.at != reading.at {
            let (level, times) = (level.name.clone(), start..start.plus(level.width_ms));
            return Err(ReplaceRefusal::OtherTime { level, times, at: added.at });
        }
        added.value = reading.value;
        Ok(())
    }
}

/// The replacement of one reading in one part of its series.
struct ReplaceStep<'a> {
    store: &'a Store,
    plan: &'a ReplacePlan,
    series: SeriesId,
    reading: &'a NewReading,
}

/// The changed cells, with the name and the times of the finest changed slot.
type Found = (ChangedCells, (String, Range<UnixMillis>));

impl ReplaceStep<'_> {
    /// Returns the changed cells; `None` when the part has no reading of that time.
    fn changes(&self) -> Result<Result<Option<Found>, ReplaceRefusal>, StoreError> {
        let (store, at) = (self.store, self.reading.at);
        let class = ClassIndex(store.class_at(self.series, at) as u8);
        let living = store.inner.classes.get(class).range();
        let retired = store.inner.classes.levels().len()..store.all_granularities().len();
        let mut levels: Vec<_> = living.chain(retired).map(GranularityIndex).collect();
        levels.sort_by_key(|index| store.granularity(*index).width_ms);
        let mut changes = ChangedCells::new();
        let (mut finest, mut finer) = (None, Vec::new());
        for index in levels {
            let level = store.granularity(index);
            let start = level.slot_start(at);
            let times = start..start.plus(level.width_ms);
            let mut slots = Vec::new();
            self.cells(index, &times, &changes, &mut slots)?;
            let cell = slots.first().map_or(Cell::EMPTY, |slot| slot.cell);
            let first_at = start.plus(i64::from(cell.first_at));
            let single = Cell::single((at.0 - start.0) as u32, self.reading.value);
            let new = if cell.n == 0 {
                None
            } else if cell.n == 1 && first_at == at {
                Some(single)
            } else {
                let Some(merged) = self.recomputed((&times, &cell), &finer, &changes)? else {
                    let (level, n) = (level.name.clone(), cell.n);
                    return Ok(Err(match (finer.is_empty(), n) {
                        (true, 1) => ReplaceRefusal::OtherTime { level, times, at: first_at },
                        (true, _) => ReplaceRefusal::Several { level, times, n },
                        (false, _) => ReplaceRefusal::Incomplete { level, times, n },
                    }));
                };
                // Without a change at a finer level, no stored sample has this time.
                finest.is_some().then_some(merged)
            };
            if let Some(new) = new {
                changes.insert((index, start, self.series), new);
                finest.get_or_insert_with(|| (level.name.clone(), times));
            }
            finer.push(index);
        }
        Ok(Ok(finest.map(|finest| (changes, finest))))
    }

    /// Merges the cells of a slot at the coarsest finer level that has all samples of its cell.
    fn recomputed(
        &self,
        (times, cell): (&Range<UnixMillis>, &Cell),
        finer: &[GranularityIndex],
        changes: &ChangedCells,
    ) -> Result<Option<Cell>, StoreError> {
        let mut slots = Vec::new();
        let width_ms = times.end.0 - times.start.0;
        for index in finer.iter().rev().copied() {
            if width_ms % self.store.granularity(index).width_ms != 0 {
                continue;
            }
            self.cells(index, times, changes, &mut slots)?;
            let mut merged = Cell::EMPTY;
            for Slot { start, cell: part } in &slots {
                merged.merge(&part.shifted((start.0 - times.start.0) as u32));
            }
            if has_same_samples(&merged, cell) {
                return Ok(Some(merged));
            }
        }
        Ok(None)
    }

    /// Replaces `slots` with the cells of a level in a range, with the changes so far.
    fn cells(
        &self,
        index: GranularityIndex,
        times: &Range<UnixMillis>,
        changes: &ChangedCells,
        slots: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        let view = self.store.view_level(index, times.clone(), vec![self.series])?;
        view.slots_into(self.series, Columns::ALL, slots)?;
        for slot in slots {
            let key = (index, slot.start, self.series);
            if let Some(cell) = changes.get(&key).or_else(|| self.plan.changed.get(&key)) {
                slot.cell = *cell;
            }
        }
        Ok(())
    }
}
