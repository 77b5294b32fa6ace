//! Which targets there are, and when each is scraped next: what discovery, the clock and the
//! scraping threads share.
//!
//! Must never know: threads, requests, answers.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use crate::{
    answer::Shown,
    memory::{Memory, Samples},
    target::{Assigned, Target},
};

/// Answers that wait for the next round take this part of the memory at most; the oldest make room.
const WAITING_SHARE: usize = 2;
/// A scrape counts at the time that it was due when it begins this soon after: slots stay even.
const TOLERANCE_MS: i64 = 50;

/// A target's number, never given twice.
pub(crate) type TargetId = u64;

/// A target on the board.
#[derive(Debug)]
struct Entry {
    assigned: Assigned,
    /// Not here while it is being scraped.
    shown: Option<Shown>,
    due_ms: i64,
    /// Why the last scrape failed.
    problem: Option<String>,
    is_scraped: bool,
}

/// What a thread takes to scrape a target.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) id: TargetId,
    pub(crate) assigned: Assigned,
    pub(crate) shown: Shown,
    /// The time of its samples.
    pub(crate) time_ms: i64,
}

/// The shared state.
#[derive(Debug)]
pub(crate) struct Board {
    memory: Arc<Memory>,
    entries: BTreeMap<TargetId, Entry>,
    by_hash: HashMap<(usize, u64), TargetId>,
    due: BTreeSet<(i64, TargetId)>,
    next_id: TargetId,
    /// When the next target was asked for last.
    looked_ms: i64,
    /// Answers that no round has taken yet.
    waiting: VecDeque<Samples>,
    dropped_samples: u64,
    missed: u64,
    /// What discovery says is wrong, by its place.
    faults: HashMap<String, String>,
}

/// Counts for the agent's own series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) up: u64,
    pub(crate) down: u64,
    pub(crate) missed: u64,
    pub(crate) dropped_samples: u64,
    /// Answers that had no room, and bytes that all targets take now.
    pub(crate) without_room: u64,
    pub(crate) bytes: u64,
}

impl Board {
    /// No targets yet.
    pub(crate) fn new(memory: Arc<Memory>) -> Self {
        Self {
            memory,
            entries: BTreeMap::new(),
            by_hash: HashMap::new(),
            due: BTreeSet::new(),
            next_id: 0,
            looked_ms: 0,
            waiting: VecDeque::new(),
            dropped_samples: 0,
            missed: 0,
            faults: HashMap::new(),
        }
    }

    /// Says which targets a job has now. Those that it had before go on as they are; those that
    /// are gone end.
    pub(crate) fn assign(&mut self, job_index: usize, targets: Vec<Assigned>, now_ms: i64) {
        let mut stays = HashSet::new();
        for assigned in targets {
            let hash = (job_index, assigned.target.hash());
            if let Some(id) = self.by_hash.get(&hash) {
                stays.insert(*id);
                continue;
            }
            let id = self.next_id;
            self.next_id += 1;
            let due_ms = assigned.target.next_after(now_ms);
            let shown = Some(Shown::new(&self.memory));
            let entry = Entry { assigned, shown, due_ms, problem: None, is_scraped: false };
            self.entries.insert(id, entry);
            self.by_hash.insert(hash, id);
            self.due.insert((due_ms, id));
            stays.insert(id);
        }
        let is_gone =
            |(job, _): &(usize, u64), id: &TargetId| *job == job_index && !stays.contains(id);
        let gone: Vec<_> = self
            .by_hash
            .iter()
            .filter(|(hash, id)| is_gone(hash, id))
            .map(|(hash, id)| (*hash, *id))
            .collect();
        for (hash, id) in gone {
            self.by_hash.remove(&hash);
            if let Some(entry) = self.entries.remove(&id) {
                self.due.remove(&(entry.due_ms, id));
                // One that is being scraped ends when the thread comes back with it.
                if let Some(shown) = entry.shown {
                    self.end(shown, now_ms);
                }
            }
        }
    }

    /// Whether a target is due.
    pub(crate) fn is_due(&self, now_ms: i64) -> bool {
        self.due.first().is_some_and(|(due_ms, _)| *due_ms <= now_ms)
    }

    /// The next target that is due, or when there will be one.
    pub(crate) fn next(&mut self, now_ms: i64) -> Result<Ticket, Option<i64>> {
        if now_ms < std::mem::replace(&mut self.looked_ms, now_ms) {
            self.clock_stepped_back(now_ms);
        }
        loop {
            let Some((due_ms, id)) = self.due.first().copied() else { return Err(None) };
            if due_ms > now_ms {
                return Err(Some(due_ms));
            }
            self.due.remove(&(due_ms, id));
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            let next_ms = entry.assigned.target.next_after(now_ms);
            let interval_ms = entry.assigned.target.interval.as_millis() as i64;
            entry.due_ms = next_ms;
            self.due.insert((next_ms, id));
            self.missed +=
                (next_ms - due_ms).div_euclid(interval_ms.max(1)).max(1).unsigned_abs() - 1;
            let Some(shown) = entry.shown.take() else {
                // Still under way from last time: a timeout is never longer than an interval, so
                // that this is the exception.
                self.missed += 1;
                continue;
            };
            let time_ms = if now_ms - due_ms <= TOLERANCE_MS { due_ms } else { now_ms };
            return Ok(Ticket { id, assigned: entry.assigned.clone(), shown, time_ms });
        }
    }

    /// What is due later than an interval from now was to be at a time that comes again.
    fn clock_stepped_back(&mut self, now_ms: i64) {
        for (id, entry) in &mut self.entries {
            let interval_ms = entry.assigned.target.interval.as_millis() as i64;
            if entry.due_ms.saturating_sub(now_ms) > interval_ms {
                self.due.remove(&(entry.due_ms, *id));
                entry.due_ms = entry.assigned.target.next_after(now_ms);
                self.due.insert((entry.due_ms, *id));
            }
        }
    }

    /// Makes every target due now, for a round by itself.
    pub(crate) fn all_due(&mut self, now_ms: i64) {
        self.due.clear();
        for (id, entry) in &mut self.entries {
            entry.due_ms = now_ms;
            entry.is_scraped = false;
            self.due.insert((now_ms, *id));
        }
    }

    /// Whether each target was scraped since it was put here or made due.
    pub(crate) fn is_all_scraped(&self) -> bool {
        self.entries.values().all(|entry| entry.is_scraped)
    }

    /// Takes back a target with what its scrape gave.
    pub(crate) fn done(
        &mut self,
        ticket: Ticket,
        samples: Samples,
        problem: Option<String>,
        now_ms: i64,
    ) {
        self.wait(samples);
        match self.entries.get_mut(&ticket.id) {
            Some(entry) => {
                entry.shown = Some(ticket.shown);
                entry.problem = problem;
                entry.is_scraped = true;
            }
            None => self.end(ticket.shown, now_ms),
        }
    }

    /// The answers since this was asked last.
    pub(crate) fn take(&mut self) -> VecDeque<Samples> {
        std::mem::take(&mut self.waiting)
    }

    /// Whether answers wait.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Notes what is wrong with a place of discovery, or that nothing is.
    pub(crate) fn set_fault(&mut self, place: String, fault: Option<String>) {
        match fault {
            Some(fault) => drop(self.faults.insert(place, fault)),
            None => drop(self.faults.remove(&place)),
        }
    }

    /// What is wrong now: place and cause.
    pub(crate) fn problems(&self) -> Vec<(String, String)> {
        let failing = |entry: &Entry| -> Option<(String, String)> {
            let Target { url, .. } = &entry.assigned.target;
            Some((format!("target {url}"), entry.problem.clone()?))
        };
        let faults = self.faults.iter().map(|(place, fault)| (place.clone(), fault.clone()));
        let mut all: Vec<_> = self.entries.values().filter_map(failing).chain(faults).collect();
        all.sort();
        all
    }

    /// For the agent's own series.
    pub(crate) fn counts(&self) -> Counts {
        let scraped = self.entries.values().filter(|entry| entry.is_scraped);
        let (down, up): (Vec<_>, Vec<_>) = scraped.partition(|entry| entry.problem.is_some());
        Counts {
            up: up.len() as u64,
            down: down.len() as u64,
            missed: self.missed,
            dropped_samples: self.dropped_samples,
            without_room: self.memory.refused(),
            bytes: self.memory.used() as u64,
        }
    }

    fn end(&mut self, mut shown: Shown, now_ms: i64) {
        let mut samples = shown.end_all(now_ms);
        shown.end_reports(now_ms, &mut samples);
        self.wait(samples);
    }

    fn wait(&mut self, samples: Samples) {
        if samples.readings.is_empty() {
            return;
        }
        self.waiting.push_back(samples);
        let mut bytes: usize = self.waiting.iter().map(Samples::bytes).sum();
        while bytes > self.memory.max() / WAITING_SHARE && self.waiting.len() > 1 {
            let Some(dropped) = self.waiting.pop_front() else { break };
            bytes -= dropped.bytes();
            self.dropped_samples += dropped.readings.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests;
