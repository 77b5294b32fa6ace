//! The board: the targets and their next scrapes, shared by discovery, the scheduler and
//! the workers.
//!
//! Must never know: threads, requests, answers.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use crate::{
    conversion::TargetSeries,
    memory::{Memory, Samples},
    target::{AssignedTarget, Target},
};

/// The divisor of the memory limit for samples that wait for the next round. Above half of the
/// memory, the oldest samples are dropped.
const WAITING_DIVISOR: usize = 2;
/// The maximum delay for which a scrape keeps its scheduled time, so that samples stay evenly
/// spaced.
const DELAY_TOLERANCE_MS: i64 = 50;

/// The unique number of a target.
pub(crate) type TargetId = u64;

/// A target on the board.
#[derive(Debug)]
struct Entry {
    assigned_target: AssignedTarget,
    /// `None` while the target is being scraped.
    series: Option<TargetSeries>,
    /// The time of the next scrape, even while the target is being scraped.
    due_ms: i64,
    /// The error of the last scrape.
    problem: Option<String>,
    is_scraped: bool,
}

/// The task of a worker: a target to scrape.
#[derive(Debug)]
pub(crate) struct ScrapeTask {
    pub(crate) id: TargetId,
    pub(crate) assigned_target: AssignedTarget,
    pub(crate) series: TargetSeries,
    /// The time of the samples.
    pub(crate) time_ms: i64,
}

/// The shared state of all targets.
#[derive(Debug)]
pub(crate) struct Board {
    memory: Arc<Memory>,
    entries: BTreeMap<TargetId, Entry>,
    by_hash: HashMap<(usize, u64), TargetId>,
    due: BTreeSet<(i64, TargetId)>,
    next_id: TargetId,
    /// The time of the last request for a due target.
    last_poll_ms: i64,
    /// Samples that wait for the next round.
    waiting: VecDeque<Samples>,
    dropped_samples: u64,
    dropped_targets: u64,
    missed: u64,
    /// Problems of discovery, by object.
    faults: HashMap<String, String>,
}

/// The values of the agent's series about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScrapeCounts {
    pub(crate) up: u64,
    pub(crate) down: u64,
    pub(crate) missed: u64,
    pub(crate) dropped_samples: u64,
    /// The number of targets beyond the maximum of a source, at each change of the source.
    pub(crate) dropped_targets: u64,
    /// The number of refused requests for memory.
    pub(crate) refused_memory: u64,
    /// The memory in use.
    pub(crate) bytes: u64,
}

impl Board {
    /// Creates an empty board.
    pub(crate) fn new(memory: Arc<Memory>) -> Self {
        Self {
            memory,
            entries: BTreeMap::new(),
            by_hash: HashMap::new(),
            due: BTreeSet::new(),
            next_id: 0,
            last_poll_ms: 0,
            waiting: VecDeque::new(),
            dropped_samples: 0,
            dropped_targets: 0,
            missed: 0,
            faults: HashMap::new(),
        }
    }

    /// Sets the targets of a job. Existing targets continue unchanged; removed targets end.
    pub(crate) fn assign(&mut self, job_index: usize, targets: Vec<AssignedTarget>, now_ms: i64) {
        let mut kept_ids = HashSet::new();
        for assigned_target in targets {
            let hash = (job_index, assigned_target.target.hash());
            if let Some(id) = self.by_hash.get(&hash) {
                kept_ids.insert(*id);
                continue;
            }
            let id = self.next_id;
            self.next_id += 1;
            let due_ms = assigned_target.target.next_after(now_ms);
            let series = Some(TargetSeries::new(&self.memory));
            let entry = Entry { assigned_target, series, due_ms, problem: None, is_scraped: false };
            self.entries.insert(id, entry);
            self.by_hash.insert(hash, id);
            self.due.insert((due_ms, id));
            kept_ids.insert(id);
        }
        let is_removed =
            |(job, _): &(usize, u64), id: &TargetId| *job == job_index && !kept_ids.contains(id);
        let removed: Vec<_> = self
            .by_hash
            .iter()
            .filter(|(hash, id)| is_removed(hash, id))
            .map(|(hash, id)| (*hash, *id))
            .collect();
        for (hash, id) in removed {
            self.by_hash.remove(&hash);
            if let Some(entry) = self.entries.remove(&id) {
                self.due.remove(&(entry.due_ms, id));
                // A target that is being scraped ends when its worker returns it.
                if let Some(series) = entry.series {
                    self.end_series(series, now_ms);
                }
            }
        }
    }

    /// Returns true when a target is due.
    pub(crate) fn is_due(&self, now_ms: i64) -> bool {
        self.due.first().is_some_and(|(due_ms, _)| *due_ms <= now_ms)
    }

    /// Returns the next due target, or else the time at which a target is due, if there is a
    /// target.
    pub(crate) fn next_task(&mut self, now_ms: i64) -> Result<ScrapeTask, Option<i64>> {
        if now_ms < std::mem::replace(&mut self.last_poll_ms, now_ms) {
            self.correct_due_times(now_ms);
        }
        loop {
            let Some((due_ms, id)) = self.due.first().copied() else { return Err(None) };
            if due_ms > now_ms {
                return Err(Some(due_ms));
            }
            self.due.remove(&(due_ms, id));
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            // The next scrape of a target waits for the end of the current scrape.
            let Some(series) = entry.series.take() else { continue };
            let next_ms = entry.assigned_target.target.next_after(now_ms);
            let interval_ms = entry.assigned_target.target.interval.as_millis() as i64;
            entry.due_ms = next_ms;
            self.due.insert((next_ms, id));
            self.missed +=
                (next_ms - due_ms).div_euclid(interval_ms.max(1)).max(1).unsigned_abs() - 1;
            let time_ms = if now_ms - due_ms <= DELAY_TOLERANCE_MS { due_ms } else { now_ms };
            return Ok(ScrapeTask {
                id,
                assigned_target: entry.assigned_target.clone(),
                series,
                time_ms,
            });
        }
    }

    /// Corrects due times after the clock stepped back: no target is due later than one interval
    /// from now.
    fn correct_due_times(&mut self, now_ms: i64) {
        for (id, entry) in &mut self.entries {
            let interval_ms = entry.assigned_target.target.interval.as_millis() as i64;
            if entry.due_ms.saturating_sub(now_ms) > interval_ms {
                self.due.remove(&(entry.due_ms, *id));
                entry.due_ms = entry.assigned_target.target.next_after(now_ms);
                self.due.insert((entry.due_ms, *id));
            }
        }
    }

    /// Makes every target due at once, for a single round.
    pub(crate) fn make_all_due(&mut self, now_ms: i64) {
        self.due.clear();
        for (id, entry) in &mut self.entries {
            entry.due_ms = now_ms;
            entry.is_scraped = false;
            self.due.insert((now_ms, *id));
        }
    }

    /// Returns true when every target was scraped since it was added or made due.
    pub(crate) fn is_all_scraped(&self) -> bool {
        self.entries.values().all(|entry| entry.is_scraped)
    }

    /// Records the result of a scrape. The target can be scraped again.
    pub(crate) fn finish(
        &mut self,
        task: ScrapeTask,
        samples: Samples,
        problem: Option<String>,
        now_ms: i64,
    ) {
        self.queue(samples);
        match self.entries.get_mut(&task.id) {
            Some(entry) => {
                entry.series = Some(task.series);
                entry.problem = problem;
                entry.is_scraped = true;
                // A scrape that has become due in the meantime follows at once.
                self.due.insert((entry.due_ms, task.id));
            }
            None => self.end_series(task.series, now_ms),
        }
    }

    /// Removes and returns the samples since the last call.
    pub(crate) fn take_samples(&mut self) -> VecDeque<Samples> {
        std::mem::take(&mut self.waiting)
    }

    /// Returns true when samples are waiting.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Counts targets beyond the maximum of a source.
    pub(crate) fn count_dropped_targets(&mut self, targets: u64) {
        self.dropped_targets = self.dropped_targets.saturating_add(targets);
    }

    /// Sets or clears the problem of an object of discovery.
    pub(crate) fn set_fault(&mut self, object: String, fault: Option<String>) {
        match fault {
            Some(fault) => drop(self.faults.insert(object, fault)),
            None => drop(self.faults.remove(&object)),
        }
    }

    /// Returns the current problems: object and cause.
    pub(crate) fn problems(&self) -> Vec<(String, String)> {
        let failing = |entry: &Entry| -> Option<(String, String)> {
            let Target { url, .. } = &entry.assigned_target.target;
            Some((format!("target {url}"), entry.problem.clone()?))
        };
        let faults = self.faults.iter().map(|(object, fault)| (object.clone(), fault.clone()));
        let mut all: Vec<_> = self.entries.values().filter_map(failing).chain(faults).collect();
        all.sort();
        all
    }

    /// Returns the values of the agent's series about itself.
    pub(crate) fn counts(&self) -> ScrapeCounts {
        let scraped = self.entries.values().filter(|entry| entry.is_scraped);
        let (down, up): (Vec<_>, Vec<_>) = scraped.partition(|entry| entry.problem.is_some());
        ScrapeCounts {
            up: up.len() as u64,
            down: down.len() as u64,
            missed: self.missed,
            dropped_samples: self.dropped_samples,
            dropped_targets: self.dropped_targets,
            refused_memory: self.memory.refused(),
            bytes: self.memory.used() as u64,
        }
    }

    fn end_series(&mut self, mut series: TargetSeries, now_ms: i64) {
        let mut samples = series.end_all(now_ms);
        series.end_reports(now_ms, &mut samples);
        self.queue(samples);
    }

    fn queue(&mut self, samples: Samples) {
        if samples.readings.is_empty() {
            return;
        }
        self.waiting.push_back(samples);
        let mut bytes: usize = self.waiting.iter().map(Samples::bytes).sum();
        while bytes > self.memory.max() / WAITING_DIVISOR && self.waiting.len() > 1 {
            let Some(dropped) = self.waiting.pop_front() else { break };
            bytes -= dropped.bytes();
            self.dropped_samples += dropped.readings.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests;
