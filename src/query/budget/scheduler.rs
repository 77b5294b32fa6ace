//! The scheduler of queries: a few queries run at a time, in turns. Queries that have used little
//! time run first.
//!
//! Must never know: what is queried.
//!
//! A query holds the catalog's lock for short moments. With more running queries than cores, the
//! operating system could suspend a query while it holds the lock, and the writer would wait until
//! that query runs again. Of two queries that have used about the same time, the earlier query runs
//! first.

use std::{cell::Cell, sync::Arc, thread::available_parallelism, time::Duration};

use parking_lot::{Condvar, Mutex};

use crate::{clock::Stopwatch, query::error::OverBudget};

/// The niceness that query threads add: a tenth of the CPU share of other threads.
const NICENESS: i32 = 10;
/// Length of a turn while other queries wait.
const SLICE: Duration = Duration::from_millis(5);
/// Ratio of the used slices of two neighbouring classes. Queries of a lower class run first.
const CLASS_FACTOR: u32 = 4;
/// Every fourth turn goes to the earliest query, whatever its class, so that no query starves.
const EARLIEST_EVERY: u64 = 4;
/// The interval at which a waiting query checks whether it should end.
const GIVE_UP_CHECK: Duration = Duration::from_millis(20);

/// The scheduler. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Scheduler(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    slice: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Number of free turns.
    free: usize,
    waiting: Vec<QueuedQuery>,
    /// Number of queries so far.
    queries: u64,
    /// Number of turns so far.
    turns_granted: u64,
}

/// A query that waits for a turn; smaller values run first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct QueuedQuery {
    /// The class, which grows with the used slices.
    class: u32,
    /// The query's number, in order of arrival.
    query: u64,
}

impl Scheduler {
    /// Creates a scheduler that runs `running_max` queries at a time. A turn lasts for `slice`
    /// while other queries wait.
    pub fn new(running_max: usize, slice: Duration) -> Self {
        let state =
            State { free: running_max.max(1), waiting: Vec::new(), queries: 0, turns_granted: 0 };
        Self(Arc::new(Queue { slice, state: Mutex::new(state), changed: Condvar::new() }))
    }

    /// Creates a scheduler that leaves half of the cores to ingest.
    pub fn for_this_machine() -> Self {
        Self::new(available_parallelism().map_or(1, usize::from) / 2, SLICE)
    }

    /// Adds a query, which has no turn yet.
    pub(super) fn turn(&self) -> Turn {
        let query = {
            let mut state = self.0.state.lock();
            state.queries += 1;
            state.queries
        };
        Turn {
            queue: self.0.clone(),
            query,
            is_held: Cell::new(false),
            slices: Cell::new(0),
            slice: Cell::new(Stopwatch::start()),
        }
    }

    /// Returns the number of waiting queries.
    pub fn waiting(&self) -> usize {
        self.0.state.lock().waiting.len()
    }

    /// Returns the number of turns so far.
    pub fn turns_granted(&self) -> u64 {
        self.0.state.lock().turns_granted
    }
}

/// Lowers the priority of this thread below ingest. On Linux, each thread has a niceness.
fn lower_priority() {
    thread_local! {
        static IS_NICE: Cell<bool> = const { Cell::new(false) };
    }
    if IS_NICE.replace(true) {
        return;
    }
    // Without a process ID, both calls refer to the current thread.
    let result = rustix::process::getpriority_process(None)
        .and_then(|niceness| rustix::process::setpriority_process(None, niceness + NICENESS));
    if let Err(cause) = result {
        tracing::debug!(%cause, "cannot lower the priority of a query thread");
    }
}

/// The turns of one query.
#[derive(Debug)]
pub(super) struct Turn {
    queue: Arc<Queue>,
    query: u64,
    is_held: Cell<bool>,
    /// Number of slices used.
    slices: Cell<u32>,
    slice: Cell<Stopwatch>,
}

impl Turn {
    /// Continues the turn while its slice lasts; otherwise waits for the next turn, until
    /// `check_over` returns an error. The first call lowers the priority of the thread.
    pub(super) fn hold(
        &self,
        now: &Stopwatch,
        check_over: impl Fn() -> Result<(), OverBudget>,
    ) -> Result<(), OverBudget> {
        let is_held = self.is_held.get();
        if is_held {
            if self.slice.get().until(now) < self.queue.slice {
                return Ok(());
            }
            self.slices.set(self.slices.get().saturating_add(1));
        } else {
            lower_priority();
        }
        self.is_held.set(false);
        let queued = QueuedQuery { class: class(self.slices.get()), query: self.query };
        self.queue.enter(queued, is_held, check_over)?;
        self.is_held.set(true);
        self.slice.set(Stopwatch::start());
        Ok(())
    }

    /// Ends the turn before its slice is over; the next check waits for another turn.
    pub(super) fn release(&self) {
        if self.is_held.replace(false) {
            self.queue.state.lock().free += 1;
            self.queue.changed.notify_all();
        }
    }
}

/// Returns the class of a query by the number of slices that it has used up. Class 0 is for
/// queries in their first slice; most queries of a dashboard finish within it.
fn class(slices: u32) -> u32 {
    slices.checked_ilog(CLASS_FACTOR).map_or(0, |class| class + 1)
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.release();
    }
}

impl Queue {
    /// Releases the current turn and waits for the next.
    fn enter(
        &self,
        queued: QueuedQuery,
        is_held: bool,
        check_over: impl Fn() -> Result<(), OverBudget>,
    ) -> Result<(), OverBudget> {
        let mut state = self.state.lock();
        state.free += usize::from(is_held);
        state.waiting.push(queued);
        let mut outcome = Ok(());
        if state.free == 0 || state.next() != Some(queued) {
            self.changed.notify_all();
        }
        while outcome.is_ok() && (state.free == 0 || state.next() != Some(queued)) {
            self.changed.wait_for(&mut state, GIVE_UP_CHECK);
            outcome = check_over();
        }
        state.waiting.retain(|waiting| *waiting != queued);
        if outcome.is_ok() {
            state.free -= 1;
            state.turns_granted += 1;
        }
        if state.free > 0 && !state.waiting.is_empty() {
            // The next turn may belong to a query that waits behind this query.
            self.changed.notify_all();
        }
        outcome
    }
}

impl State {
    /// Returns the query that gets the next turn.
    fn next(&self) -> Option<QueuedQuery> {
        if self.turns_granted % EARLIEST_EVERY == EARLIEST_EVERY - 1 {
            return self.waiting.iter().copied().min_by_key(|queued| queued.query);
        }
        self.waiting.iter().copied().min()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn classes_rise_with_used_slices_and_begin_at_zero() {
        let classes: Vec<_> = [0, 1, 3, 4, 15, 16].map(class).to_vec();
        assert_eq!(classes, [0, 1, 1, 2, 2, 3]);
    }

    #[expect(clippy::unnecessary_wraps, reason = "a turn's check returns a result")]
    fn never_over() -> Result<(), OverBudget> {
        Ok(())
    }

    fn over_at_once() -> Result<(), OverBudget> {
        Err(OverBudget::Time)
    }

    /// Creates a scheduler whose turns end at every check.
    fn scheduler(running_max: usize) -> Scheduler {
        Scheduler::new(running_max, Duration::ZERO)
    }

    fn is_idle(scheduler: &Scheduler, turns: usize) -> bool {
        let state = scheduler.0.state.lock();
        (state.free, state.waiting.len()) == (turns, 0)
    }

    #[test]
    fn every_query_gets_its_turns_and_at_most_two_run_at_a_time() {
        let scheduler = scheduler(2);
        let (running, running_peak) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            running_peak.fetch_max(now, Ordering::SeqCst);
            running.fetch_sub(1, Ordering::SeqCst);
        };
        std::thread::scope(|scope| {
            for slices in [3, 300, 3, 300, 300, 300] {
                let (scheduler, work) = (&scheduler, &work);
                scope.spawn(move || {
                    let turn = scheduler.turn();
                    for _ in 0..slices {
                        turn.hold(&Stopwatch::start(), never_over).unwrap();
                        work();
                    }
                });
            }
        });
        assert!(running_peak.load(Ordering::SeqCst) <= 2);
        assert_eq!(scheduler.turns_granted(), 4 * 300 + 2 * 3);
        assert!(is_idle(&scheduler, 2));
    }

    #[test]
    fn queries_that_have_used_little_time_run_first_and_equal_queries_in_order_of_arrival() {
        let queued = |class, query| QueuedQuery { class, query };
        let next = |turns_granted, waiting: &[QueuedQuery]| {
            State { free: 1, waiting: waiting.to_vec(), queries: 9, turns_granted }.next()
        };
        let all = [queued(3, 1), queued(1, 5), queued(1, 4), queued(2, 2)];
        for turns_granted in 0..3 {
            assert_eq!(next(turns_granted, &all), Some(queued(1, 4)));
        }
        assert_eq!(next(3, &all), Some(queued(3, 1)), "no query waits forever");
        assert_eq!(next(0, &[]), None);
    }

    #[test]
    fn a_short_query_runs_between_the_turns_of_a_long_query() {
        let scheduler = scheduler(1);
        let long_turn = scheduler.turn();
        for _ in 0..1000 {
            long_turn.hold(&Stopwatch::start(), never_over).unwrap();
        }
        std::thread::scope(|scope| {
            let short = scope.spawn(|| {
                let turn = scheduler.turn();
                for _ in 0..3 {
                    turn.hold(&Stopwatch::start(), never_over).unwrap();
                }
            });
            while scheduler.waiting() == 0 {
                std::thread::yield_now();
            }
            // The short query ends only because the long query releases its turn.
            while !short.is_finished() {
                long_turn.hold(&Stopwatch::start(), never_over).unwrap();
            }
        });
        drop(long_turn);
        assert!(is_idle(&scheduler, 1));
    }

    #[test]
    fn a_query_that_stops_waiting_delays_no_other_query() {
        let scheduler = scheduler(1);
        let holder = scheduler.turn();
        holder.hold(&Stopwatch::start(), never_over).unwrap();
        assert_eq!(
            scheduler.turn().hold(&Stopwatch::start(), over_at_once),
            Err(OverBudget::Time),
            "the only turn is held"
        );
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let (next, done) = (&scheduler, &done);
            scope.spawn(move || {
                let turn = next.turn();
                turn.hold(&Stopwatch::start(), never_over).unwrap();
                while done.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
            });
            while scheduler.waiting() == 0 {
                std::thread::yield_now();
            }
            while holder.hold(&Stopwatch::start(), over_at_once).is_ok() {}
            assert!(
                holder.hold(&Stopwatch::start(), over_at_once).is_err(),
                "a query that gave up holds no turn"
            );
            done.store(1, Ordering::SeqCst);
        });
        drop(holder);
        assert!(is_idle(&scheduler, 1));
    }
}
