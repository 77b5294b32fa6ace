//! The last hour of all hosts in one answer: a line each for CPU, memory, disk and network.
//!
//! Lines are kept from one answer to the next, and only the newest slots are read again; from time
//! to time all are, for what came late. One answer is made at a time, and serves who asks within
//! some seconds. Must never know: HTTP, which hosts ping.

mod lines;
mod members;
mod sums;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize, Serializer};

pub use lines::Spark;

use crate::{
    model::{GranularityIndex, Span, UnixMillis},
    query::{Budget, QueryError, QueryLimits, time::resolution::granularity_of_width},
    store::Store,
};
use lines::{Numbers, Shown};
use members::Members;
use sums::Sums;

/// How long an answer serves others.
const FRESH_MS: i64 = 10_000;
/// Width of a slot, where a granularity makes it.
const SLOT_MS: i64 = 60_000;
/// What lines show.
const RANGE_MS: i64 = 3_600_000;
/// The budget bounds what is read.
const LIMITS: QueryLimits = QueryLimits {
    lines_max: i64::MAX as usize,
    series_max: i64::MAX as usize,
    points_max: i64::MAX as usize,
};
/// Slots that are read again with each answer: the last ones are not complete when they are over.
const AGAIN: usize = 5;
/// How often all slots are read again, for what came later than that.
const ALL_AGAIN_MS: i64 = 300_000;

/// The lines of all hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SparklinesAnswer {
    /// Start of the first slot, Unix milliseconds.
    pub start: i64,
    /// Width of a slot in milliseconds.
    pub step_ms: i64,
    /// Slots of a line, all of them over.
    pub points: usize,
    /// By name.
    pub hosts: BTreeMap<String, HostLines>,
}

/// The lines of one host, those of which there is any number.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "`Shown` explains each")]
pub struct HostLines {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Spark>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Spark>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Spark>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Spark>,
    /// The file system that was fullest when any was last known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<FullestFilesystem>,
}

/// A file system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FullestFilesystem {
    /// Where it is mounted.
    pub mount: String,
    /// How much of it is used.
    pub used_percent: f32,
}

/// An answer that several share.
#[derive(Debug, Clone)]
pub struct SharedSparklines(Arc<SparklinesAnswer>);

impl Serialize for SharedSparklines {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// What is kept from one answer to the next.
#[derive(Debug, Default)]
pub struct Sparklines {
    /// Held while an answer is made.
    state: Mutex<State>,
    latest: Mutex<Option<(UnixMillis, Arc<SparklinesAnswer>)>>,
}

#[derive(Debug, Default)]
struct State {
    members: Members,
    numbers: BTreeMap<Arc<str>, Numbers>,
    window: Window,
    /// When all slots were read.
    all_at: Option<UnixMillis>,
}

/// The slots of all lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Window {
    start: i64,
    width: i64,
    slots: usize,
}

impl Window {
    /// The last slots that are over.
    fn at(store: &Store, now: UnixMillis) -> Self {
        let granularities = store.granularities();
        let is_made = granularity_of_width(granularities, SLOT_MS).is_some();
        let finest = granularities[GranularityIndex::FINEST].width_ms;
        let width = if is_made { SLOT_MS } else { finest };
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
    /// An answer that is not old.
    pub fn latest(&self, now: UnixMillis) -> Option<SharedSparklines> {
        let latest = self.latest.lock();
        let is_fresh = |at: &UnixMillis| (0..FRESH_MS).contains(&now.since(*at));
        latest.as_ref().filter(|(at, _)| is_fresh(at)).map(|(_, own)| SharedSparklines(own.clone()))
    }

    /// Reads what lines are made of, so that the next answer has only the newest slots to read.
    ///
    /// # Errors
    /// As [`Sparklines::answer`].
    pub fn prepare(
        &self,
        store: &Store,
        budget: &Budget,
        now: UnixMillis,
    ) -> Result<(), QueryError> {
        self.state.lock().read(store, budget, now)
    }

    /// The lines as they are now, or were some seconds ago.
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
        let mut state = self.state.lock();
        let answer = Arc::new(state.answer(store, budget, now)?);
        *self.latest.lock() = Some((now, answer.clone()));
        Ok(SharedSparklines(answer))
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
        let hosts = self.numbers.iter().map(|(name, own)| (name.to_string(), host_lines(own)));
        let Window { start, width, slots } = self.window;
        Ok(SparklinesAnswer { start, step_ms: width, points: slots, hosts: hosts.collect() })
    }

    /// Brings the numbers up to date.
    fn read(&mut self, store: &Store, budget: &Budget, now: UnixMillis) -> Result<(), QueryError> {
        let series = self.members.series.len();
        self.members.update(store, budget)?;
        if self.members.series.len() != series {
            // The samples of new ones may begin long ago.
            self.all_at = None;
        }
        let window = Window::at(store, now);
        let numbers = self.members.hosts.len() * Numbers::bytes(window.slots);
        budget.take(self.members.bytes() + numbers * 2)?;
        let from = self.move_to(window, now);
        // Until all is well: what is lacking after a failure is read again.
        let all_at = self.all_at.take();
        let sums = Sums::read(&self.members, store, budget, window, from, now)?;
        sums.into_numbers(&self.members.hosts, &mut self.numbers, budget)?;
        self.numbers.retain(|_, own| !own.is_empty());
        self.all_at = if from == 0 { Some(now) } else { all_at };
        Ok(())
    }

    /// Moves what is known to where lines begin now; gives the first slot that must be read.
    fn move_to(&mut self, window: Window, now: UnixMillis) -> usize {
        let before = std::mem::replace(&mut self.window, window);
        let by = (window.start - before.start) / window.width;
        let is_same = (before.width, before.slots) == (window.width, window.slots);
        let is_due = self.all_at.is_none_or(|at| !(0..ALL_AGAIN_MS).contains(&now.since(at)));
        let by = usize::try_from(by).ok().filter(|by| *by < window.slots);
        match by {
            Some(by) if is_same && !is_due => {
                for own in self.numbers.values_mut() {
                    own.shift(by);
                }
                window.slots.saturating_sub(by + AGAIN)
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
        cpu: numbers.spark(Shown::Cpu),
        memory: numbers.spark(Shown::Memory),
        disk: numbers.spark(Shown::Disk),
        network: numbers.spark(Shown::Network),
        filesystem,
    }
}
