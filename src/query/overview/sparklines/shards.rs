//! Sums of hosts whose series are in several shards: each shard sends the sums of its series.
//!
//! Must never know: where the shards are, the numbers that are computed from sums.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{
    State, Window,
    lines::Numbers,
    members::SparklineSeries,
    sums::{Sum, Sums},
};
use crate::{
    model::UnixMillis,
    query::{
        Budget, QueryError, SPARKLINES,
        messages::{damaged_answer, damaged_question, read_question, written},
        wire::{
            count, has_element, put_count, put_element, put_end, put_text, put_value, take, text,
            value,
        },
    },
    store::Store,
};

/// A question for the sums of hosts.
#[derive(Debug, Serialize, Deserialize)]
struct SumsQuestion {
    window: Window,
    /// The first slot to read.
    from: usize,
    now: i64,
}

/// The number of series and of erased cells of a shard. When one of them changes, samples of slots
/// that were read may be different.
pub(super) type ShardVersion = [u64; 2];

/// The sums of all shards.
pub(super) struct SumsOfShards {
    pub(super) sums: Sums,
    pub(super) hosts: Vec<Arc<str>>,
    /// The versions of the other shards.
    pub(super) versions: Vec<ShardVersion>,
}

/// The series of one shard that contribute to sparklines, for questions of another node.
#[derive(Debug, Default)]
pub struct SparklineSums(Mutex<SparklineSeries>);

impl SparklineSums {
    /// Answers a question for the sums of hosts.
    ///
    /// # Errors
    /// When the question is damaged, the store cannot be read, or the budget is used up.
    pub fn of_question(
        &self,
        store: &Store,
        budget: &Budget,
        question: &[u8],
    ) -> Result<Vec<u8>, QueryError> {
        let SumsQuestion { window, from, now } = read_question(question)?;
        if !window.is_possible() || from >= window.slots {
            return Err(damaged_question());
        }
        // The query that holds the lock may need this turn.
        budget.release_turn();
        let mut members = self.0.lock();
        budget.check()?;
        members.update(store, budget)?;
        budget.reserve(members.bytes())?;
        let sums = Sums::read(&members, store, budget, window, from, UnixMillis(now))?;
        let mut out = Vec::new();
        for number in [members.series.len() as u64, store.counters().cells_erased.get()] {
            out.extend(number.to_le_bytes());
        }
        let slots = window.slots - from;
        for (host, sums) in members.hosts.iter().zip(sums.by_host.chunks(slots)) {
            let filled = || sums.iter().enumerate().filter(|(_, sum)| !sum.is_empty());
            if filled().next().is_none() {
                continue;
            }
            put_element(&mut out);
            put_text(host, &mut out);
            put_count(filled().count(), &mut out);
            for (slot, sum) in filled() {
                put_count(slot, &mut out);
                put_sum(sum, &mut out);
            }
        }
        put_end(&mut out);
        budget.reserve(out.capacity())?;
        Ok(out)
    }
}

impl State {
    /// Returns the sums of this and of the other shards.
    pub(super) fn sums_of_shards(
        &self,
        store: &Store,
        budget: &Budget,
        (window, from): (Window, usize),
        now: UnixMillis,
    ) -> Result<SumsOfShards, QueryError> {
        let own = || Sums::read(&self.members, store, budget, window, from, now);
        let mut hosts = self.members.hosts.clone();
        if budget.others().is_none() {
            return Ok(SumsOfShards { sums: own()?, hosts, versions: Vec::new() });
        }
        let question = SumsQuestion { window, from, now: now.0 };
        let (mut sums, answers) = budget.beside_shards(SPARKLINES, &written(&question)?, own)?;
        let mut versions = Vec::new();
        let mut places = hosts.iter().cloned().zip(0_usize..).collect();
        for answer in answers {
            budget.check()?;
            let bytes = &mut &answer[..];
            let mut number = || take(bytes).map(u64::from_le_bytes).ok_or_else(damaged_answer);
            versions.push([number()?, number()?]);
            let merged = sums.merge(bytes, (&mut hosts, &mut places), budget);
            merged.ok_or_else(damaged_answer)??;
        }
        Ok(SumsOfShards { sums, hosts, versions })
    }
}

impl Window {
    /// Returns true for a window that a node can ask for.
    fn is_possible(&self) -> bool {
        let length = i64::try_from(self.slots).ok().and_then(|slots| slots.checked_mul(self.width));
        let end = length.and_then(|length| self.start.checked_add(length));
        self.width > 0 && self.start >= 0 && end.is_some() && self.slots <= SLOTS_MAX
    }
}

/// The maximum number of slots of a line: an hour of slots of a second.
const SLOTS_MAX: usize = 3600;

impl Sums {
    /// Adds the sums of another shard. Returns `None` when the bytes are damaged.
    fn merge(
        &mut self,
        bytes: &mut &[u8],
        (hosts, places): (&mut Vec<Arc<str>>, &mut HashMap<Arc<str>, usize>),
        budget: &Budget,
    ) -> Option<Result<(), QueryError>> {
        let slots = self.window.slots - self.from;
        while has_element(bytes)? {
            let host = text(bytes)?;
            let place = if let Some(place) = places.get(host) {
                *place
            } else {
                let needed = slots * size_of::<Sum>() + 2 * Numbers::bytes(self.window.slots);
                if let Err(cause) = budget.reserve(needed + 2 * host.len()) {
                    return Some(Err(cause.into()));
                }
                let (name, place) = (Arc::<str>::from(host), hosts.len());
                self.by_host.resize_with(self.by_host.len() + slots, Sum::default);
                hosts.push(name.clone());
                places.insert(name, place);
                place
            };
            for _ in 0..count(bytes)? {
                let slot = count(bytes)?;
                let other = read_sum(bytes)?;
                let slot = Some(slot).filter(|slot| *slot < slots)?;
                self.by_host.get_mut(place * slots + slot)?.merge(other);
            }
        }
        Some(Ok(()))
    }
}

fn put_sum(sum: &Sum, out: &mut Vec<u8>) {
    put_value(sum.busy, out);
    put_value(sum.idle, out);
    for number in [sum.memory_used, sum.memory_total, sum.network] {
        out.push(u8::from(number.is_some()));
        if let Some(number) = number {
            put_value(number, out);
        }
    }
    out.push(u8::from(sum.fullest.is_some()));
    if let Some((mount, percent)) = &sum.fullest {
        put_text(mount, out);
        put_value(f64::from(*percent), out);
    }
}

fn read_sum(bytes: &mut &[u8]) -> Option<Sum> {
    let (busy, idle) = (value(bytes)?, value(bytes)?);
    let mut optional = || match take(bytes)? {
        [0] => Some(None),
        [_] => value(bytes).map(Some),
    };
    let (memory_used, memory_total, network) = (optional()?, optional()?, optional()?);
    let fullest = match take(bytes)? {
        [0] => None,
        [_] => Some((text(bytes)?.into(), value(bytes)? as f32)),
    };
    Some(Sum { busy, idle, memory_used, memory_total, network, fullest })
}
