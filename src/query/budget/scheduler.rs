//! Which queries evaluate: few at a time, in turns, those first that have used little.
//!
//! Must never know: what is evaluated. An evaluation holds the catalog's lock for moments. Were there
//! more evaluations than cores, one of them would lose its core in such a moment, and the writer would
//! wait until it is scheduled again. A query that has used much waits for those that have not; of
//! two that have used about as much, which both hold memory, the earlier one goes on.

use std::{cell::Cell, sync::Arc, thread::available_parallelism, time::Duration};

use parking_lot::{Condvar, Mutex};

use super::OverBudget;
use crate::clock::Stopwatch;

/// How far queries give way: a tenth of the share of a thread that does not.
const NICENESS: i32 = 10;
/// How long a query evaluates while others wait.
const SLICE: Duration = Duration::from_millis(5);
/// A query that has used so many times as many slices as another waits for it.
const CLASS_FACTOR: u32 = 4;
/// One of so many turns goes to the earliest query, whatever it has used: none waits for ever.
const EARLIEST_EVERY: u64 = 4;
/// How often one that waits looks whether to give up.
const GIVE_UP_CHECK: Duration = Duration::from_millis(20);

/// Gives out turns. Cheap to clone.
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
    /// Turns that nobody has.
    free: usize,
    waiting: Vec<Place>,
    /// Queries so far.
    queries: u64,
    /// Turns given out so far.
    given: u64,
}

/// Where a query stands in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// Grows with what it has used.
    class: u32,
    /// In the order in which they came.
    query: u64,
}

impl Scheduler {
    /// So many evaluations at a time, each for so long while others wait.
    pub fn new(at_a_time: usize, slice: Duration) -> Self {
        let state = State { free: at_a_time.max(1), waiting: Vec::new(), queries: 0, given: 0 };
        Self(Arc::new(Queue { slice, state: Mutex::new(state), changed: Condvar::new() }))
    }

    /// As many as leave half of the cores to ingest.
    pub fn for_this_machine() -> Self {
        Self::new(available_parallelism().map_or(1, usize::from) / 2, SLICE)
    }

    /// The place of a new query; it has no turn yet.
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

    /// Queries that wait for a turn.
    pub fn waiting(&self) -> usize {
        self.0.state.lock().waiting.len()
    }

    /// Turns given out so far.
    pub fn given(&self) -> u64 {
        self.0.state.lock().given
    }
}

/// Lets ingest go first: Linux has a niceness for each thread.
fn give_way() {
    thread_local! {
        static IS_NICE: Cell<bool> = const { Cell::new(false) };
    }
    if IS_NICE.replace(true) {
        return;
    }
    // Without a number of a process both are about this thread.
    let set = rustix::process::getpriority_process(None)
        .and_then(|own| rustix::process::setpriority_process(None, own + NICENESS));
    if let Err(cause) = set {
        tracing::debug!(%cause, "queries will not give way to ingest");
    }
}

/// One query's turn, once it has one, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    queue: Arc<Queue>,
    query: u64,
    is_held: Cell<bool>,
    /// Slices that are over.
    slices: Cell<u32>,
    slice: Cell<Stopwatch>,
}

impl Turn {
    /// Returns with a turn: the one that is held while its slice lasts, else the next, for which it
    /// waits until `is_over` has an error. The thread is nice from then on.
    pub(super) fn hold(
        &self,
        now: &Stopwatch,
        is_over: impl Fn() -> Result<(), OverBudget>,
    ) -> Result<(), OverBudget> {
        let is_held = self.is_held.get();
        if is_held {
            if self.slice.get().until(now) < self.queue.slice {
                return Ok(());
            }
            self.slices.set(self.slices.get().saturating_add(1));
        } else {
            give_way();
        }
        self.is_held.set(false);
        let place = Place { class: class(self.slices.get()), query: self.query };
        self.queue.enter(place, is_held, is_over)?;
        self.is_held.set(true);
        self.slice.set(Stopwatch::start());
        Ok(())
    }
}

/// One that has not used up its first slice, as most of a dashboard never do, goes before all that have.
fn class(slices: u32) -> u32 {
    slices.checked_ilog(CLASS_FACTOR).map_or(0, |class| class + 1)
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_held.get() {
            self.queue.state.lock().free += 1;
            self.queue.changed.notify_all();
        }
    }
}

impl Queue {
    /// Waits for a turn, after the one that is held is given back.
    fn enter(
        &self,
        own: Place,
        is_held: bool,
        is_over: impl Fn() -> Result<(), OverBudget>,
    ) -> Result<(), OverBudget> {
        let mut state = self.state.lock();
        state.free += usize::from(is_held);
        state.waiting.push(own);
        let mut outcome = Ok(());
        if state.free == 0 || state.next() != Some(own) {
            self.changed.notify_all();
        }
        while outcome.is_ok() && (state.free == 0 || state.next() != Some(own)) {
            self.changed.wait_for(&mut state, GIVE_UP_CHECK);
            outcome = is_over();
        }
        state.waiting.retain(|place| *place != own);
        if outcome.is_ok() {
            state.free -= 1;
            state.given += 1;
        }
        if state.free > 0 && !state.waiting.is_empty() {
            // Who waits behind it may be the next.
            self.changed.notify_all();
        }
        outcome
    }
}

impl State {
    /// Who gets the next turn.
    fn next(&self) -> Option<Place> {
        if self.given % EARLIEST_EVERY == EARLIEST_EVERY - 1 {
            return self.waiting.iter().copied().min_by_key(|place| place.query);
        }
        self.waiting.iter().copied().min()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn classes_grow_with_the_slices_that_were_used_and_the_first_is_for_those_that_used_none() {
        let classes: Vec<_> = [0, 1, 3, 4, 15, 16].map(class).to_vec();
        assert_eq!(classes, [0, 1, 1, 2, 2, 3]);
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is what a turn asks")]
    fn never() -> Result<(), OverBudget> {
        Ok(())
    }

    fn at_once() -> Result<(), OverBudget> {
        Err(OverBudget::Time)
    }

    /// A turn is over at each look.
    fn scheduler(at_a_time: usize) -> Scheduler {
        Scheduler::new(at_a_time, Duration::ZERO)
    }

    fn is_at_rest(scheduler: &Scheduler, places: usize) -> bool {
        let state = scheduler.0.state.lock();
        (state.free, state.waiting.len()) == (places, 0)
    }

    #[test]
    fn all_get_their_turns_and_never_too_many_at_a_time() {
        let scheduler = scheduler(2);
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            running.fetch_sub(1, Ordering::SeqCst);
        };
        std::thread::scope(|scope| {
            for slices in [3, 300, 3, 300, 300, 300] {
                let (scheduler, work) = (&scheduler, &work);
                scope.spawn(move || {
                    let turn = scheduler.turn();
                    for _ in 0..slices {
                        turn.hold(&Stopwatch::start(), never).unwrap();
                        work();
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 2);
        assert_eq!(scheduler.given(), 4 * 300 + 2 * 3);
        assert!(is_at_rest(&scheduler, 2));
    }

    #[test]
    fn those_go_first_that_have_used_little_and_of_equals_the_earlier() {
        let place = |class, query| Place { class, query };
        let next = |given, waiting: &[Place]| {
            State { free: 1, waiting: waiting.to_vec(), queries: 9, given }.next()
        };
        let all = [place(3, 1), place(1, 5), place(1, 4), place(2, 2)];
        for given in 0..3 {
            assert_eq!(next(given, &all), Some(place(1, 4)));
        }
        assert_eq!(next(3, &all), Some(place(3, 1)), "none waits for ever");
        assert_eq!(next(0, &[]), None);
    }

    #[test]
    fn a_query_that_has_used_little_goes_in_between_one_that_has_used_much() {
        let scheduler = scheduler(1);
        let long = scheduler.turn();
        for _ in 0..1000 {
            long.hold(&Stopwatch::start(), never).unwrap();
        }
        std::thread::scope(|scope| {
            let short = scope.spawn(|| {
                let turn = scheduler.turn();
                for _ in 0..3 {
                    turn.hold(&Stopwatch::start(), never).unwrap();
                }
            });
            while scheduler.waiting() == 0 {
                std::thread::yield_now();
            }
            // It ends only because the long one gives its turn back.
            while !short.is_finished() {
                long.hold(&Stopwatch::start(), never).unwrap();
            }
        });
        drop(long);
        assert!(is_at_rest(&scheduler, 1));
    }

    #[test]
    fn a_wait_can_be_given_up_and_holds_up_nobody() {
        let scheduler = scheduler(1);
        let holder = scheduler.turn();
        holder.hold(&Stopwatch::start(), never).unwrap();
        assert_eq!(
            scheduler.turn().hold(&Stopwatch::start(), at_once),
            Err(OverBudget::Time),
            "it is taken"
        );
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let (next, done) = (&scheduler, &done);
            scope.spawn(move || {
                let turn = next.turn();
                turn.hold(&Stopwatch::start(), never).unwrap();
                while done.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
            });
            while scheduler.waiting() == 0 {
                std::thread::yield_now();
            }
            while holder.hold(&Stopwatch::start(), at_once).is_ok() {}
            assert!(
                holder.hold(&Stopwatch::start(), at_once).is_err(),
                "what gave up has no turn to give back"
            );
            done.store(1, Ordering::SeqCst);
        });
        drop(holder);
        assert!(is_at_rest(&scheduler, 1));
    }
}
