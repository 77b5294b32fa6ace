//! Sparklines: the last hour of all hosts in one answer, with one line each for CPU, memory, disk
//! and network.
//!
//! The lines are kept between answers, and only the newest slots are read again; every few minutes,
//! all slots are read for late samples. One answer is built at a time and is shared for some
//! seconds. Must never know: HTTP, which hosts send pings.

mod lines;
mod members;
mod shards;
mod sums;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize, Serializer};

pub use lines::Spark;
pub use shards::SparklineSums;

use crate::{
    model::{GranularityIndex, Span, UnixMillis},
    query::{Budget, QueryError, QueryLimits, time::resolution::granularity_of_width},
    store::Store,
};
use lines::{Numbers, Quantity};
use members::SparklineSeries;
use shards::ShardVersion;

/// The time for which an answer is shared.
const FRESH_MS: i64 = 10_000;
/// The slot width, if a granularity divides it.
const SLOT_MS: i64 = 60_000;
/// The time range of the lines.
const RANGE_MS: i64 = 3_600_000;
/// Limits that are never reached: only the budget limits the query.
const LIMITS: QueryLimits = QueryLimits {
    lines_max: i64::MAX as usize,
    series_max: i64::MAX as usize,
    points_max: i64::MAX as usize,
};
/// Number of newest slots that are read for each answer. Samples may arrive shortly after their
/// slot has ended.
const NEWEST_SLOTS: usize = 5;
/// The interval at which all slots are read again.
const FULL_READ_EVERY_MS: i64 = 300_000;

/// The lines of all hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SparklinesAnswer {
    /// Start of the first slot, Unix milliseconds.
    pub start: i64,
    /// Width of a slot in milliseconds.
    pub step_ms: i64,
    /// Number of slots of a line; all of them have ended.
    pub points: usize,
    /// The lines by host name.
    pub hosts: BTreeMap<String, HostLines>,
}

/// The lines of one host; lines without a number are missing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "`Quantity` explains each")]
pub struct HostLines {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Spark>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Spark>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Spark>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Spark>,
    /// The fullest file system at the time of the last reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<FullestFilesystem>,
}

/// A file system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FullestFilesystem {
    /// The mount point.
    pub mount: String,
    /// The used percentage.
    pub used_percent: f32,
}

/// An answer that several requests share.
#[derive(Debug, Clone)]
pub struct SharedSparklines(Arc<SparklinesAnswer>);

impl Serialize for SharedSparklines {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// The state that is kept between answers.
#[derive(Debug, Default)]
pub struct Sparklines {
    /// The lock is held while an answer is built.
    state: Mutex<State>,
    latest: Mutex<Option<(UnixMillis, Arc<SparklinesAnswer>)>>,
}

#[derive(Debug, Default)]
struct State {
    members: SparklineSeries,
    numbers: BTreeMap<Arc<str>, Numbers>,
    window: Window,
    /// The last time at which all slots were read.
    all_at: Option<UnixMillis>,
    /// The number of cells that had been erased then.
    cells_erased: u64,
    /// The versions of the other shards when they were read last.
    versions: Vec<ShardVersion>,
}

/// The slots of all lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Window {
    start: i64,
    width: i64,
    slots: usize,
}

impl Window {
    /// Returns the newest slots that have ended.
    fn at(store: &Store, now: UnixMillis) -> Self {
        let granularities = store.granularities();
        let has_granularity = granularity_of_width(granularities, SLOT_MS).is_some();
        let finest = granularities[GranularityIndex::FINEST].width_ms;
        let width = if has_granularity { SLOT_MS } else { finest };
        let slots = (RANGE_MS / width).max(1);
        let end = Span::Fixed(width).start_of(now).0;
        Self { start: end - slots * width, width, slots: slots as usize }
    }

    fn slot_of(&self, at: i64) -> Option<usize> {
        let slot = at.checked_sub(self.start)?.div_euclid(self.width);
        usize::try_from(slot).ok().filter(|slot| *slot < self.slots)
    }

    fn range_from(&self, slot: usize) -> Range<UnixMillis> {
        let at = |slot: usize| UnixMillis(self.start + slot as i64 * self.width);
        at(slot)..at(self.slots)
    }
}

impl Sparklines {
    /// Returns the latest answer if it is fresh.
    pub fn latest(&self, now: UnixMillis) -> Option<SharedSparklines> {
        let latest = self.latest.lock();
        let is_fresh = |at: &UnixMillis| (0..FRESH_MS).contains(&now.since(*at));
        latest
            .as_ref()
            .filter(|(at, _)| is_fresh(at))
            .map(|(_, answer)| SharedSparklines(answer.clone()))
    }

    /// Reads the slots in advance, so that the next answer only needs to read the newest slots.
    ///
    /// # Errors
    /// See [`Sparklines::answer`].
    pub fn prepare(
        &self,
        store: &Store,
        budget: &Budget,
        now: UnixMillis,
    ) -> Result<(), QueryError> {
        self.locked(budget)?.read(store, budget, now)
    }

    /// Returns the current lines, or the shared answer of the last seconds.
    ///
    /// # Errors
    /// When the store cannot be read, or the budget is used up.
    pub fn answer(
        &self,
        store: &Store,
        budget: &Budget,
        now: UnixMillis,
    ) -> Result<SharedSparklines, QueryError> {
        if let Some(latest) = self.latest(now) {
            return Ok(latest);
        }
        let mut state = self.locked(budget)?;
        let answer = Arc::new(state.answer(store, budget, now)?);
        *self.latest.lock() = Some((now, answer.clone()));
        Ok(SharedSparklines(answer))
    }

    /// Locks the state. A query that waits for the lock leaves its turn to the query that holds the
    /// lock.
    fn locked(&self, budget: &Budget) -> Result<MutexGuard<'_, State>, QueryError> {
        budget.release_turn();
        let state = self.state.lock();
        budget.check()?;
        Ok(state)
    }
}

impl State {
    fn answer(
        &mut self,
        store: &Store,
        budget: &Budget,
        now: UnixMillis,
    ) -> Result<SparklinesAnswer, QueryError> {
        self.read(store, budget, now)?;
        let hosts =
            self.numbers.iter().map(|(name, numbers)| (name.to_string(), host_lines(numbers)));
        let Window { start, width, slots } = self.window;
        Ok(SparklinesAnswer { start, step_ms: width, points: slots, hosts: hosts.collect() })
    }

    /// Updates the numbers.
    fn read(&mut self, store: &Store, budget: &Budget, now: UnixMillis) -> Result<(), QueryError> {
        let series = self.members.series.len();
        self.members.update(store, budget)?;
        if self.members.series.len() != series {
            // Samples of new series may begin in the past.
            self.all_at = None;
        }
        let cells_erased = store.counters().cells_erased.get();
        if self.cells_erased != cells_erased {
            (self.all_at, self.cells_erased) = (None, cells_erased);
        }
        let window = Window::at(store, now);
        let numbers = self.members.hosts.len() * Numbers::bytes(window.slots);
        budget.reserve(self.members.bytes() + numbers * 2)?;
        let from = self.move_to(window, now);
        // After a failure, the next answer reads all slots again.
        let all_at = self.all_at.take();
        let mut from = from;
        let mut all = self.sums_of_shards(store, budget, (window, from), now)?;
        if all.versions != self.versions && from > 0 {
            // Another shard has new or erased samples that may be older.
            from = 0;
            self.numbers.clear();
            all = self.sums_of_shards(store, budget, (window, from), now)?;
        }
        self.versions = all.versions;
        all.sums.into_numbers(&all.hosts, &mut self.numbers, budget)?;
        self.numbers.retain(|_, numbers| !numbers.is_empty());
        self.all_at = if from == 0 { Some(now) } else { all_at };
        Ok(())
    }

    /// Shifts the numbers to a new window and returns the first slot to read.
    fn move_to(&mut self, window: Window, now: UnixMillis) -> usize {
        let before = std::mem::replace(&mut self.window, window);
        let shift = (window.start - before.start) / window.width;
        let is_same = (before.width, before.slots) == (window.width, window.slots);
        let is_due = self.all_at.is_none_or(|at| !(0..FULL_READ_EVERY_MS).contains(&now.since(at)));
        let shift = usize::try_from(shift).ok().filter(|shift| *shift < window.slots);
        match shift {
            Some(shift) if is_same && !is_due => {
                for numbers in self.numbers.values_mut() {
                    numbers.shift(shift);
                }
                window.slots.saturating_sub(shift + NEWEST_SLOTS)
            }
            _ => {
                self.numbers.clear();
                0
            }
        }
    }
}

fn host_lines(numbers: &Numbers) -> HostLines {
    let filesystem = numbers.fullest.as_ref().map(|(mount, used_percent)| FullestFilesystem {
        mount: mount.to_string(),
        used_percent: *used_percent,
    });
    HostLines {
        cpu: numbers.spark(Quantity::Cpu),
        memory: numbers.spark(Quantity::Memory),
        disk: numbers.spark(Quantity::Disk),
        network: numbers.spark(Quantity::Network),
        filesystem,
    }
}
