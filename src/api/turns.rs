//! Turns: of the queries under way few evaluate at a time, and they take turns.
//!
//! An evaluation holds the catalog's lock for moments. Were there more evaluations than cores, one
//! of them would lose its core in such a moment, and the writer would wait until it is scheduled
//! again. Short queries go in between the slices of long ones; of long ones, which hold much
//! memory, one ends before the next goes on.

use std::{cell::Cell, sync::Arc, thread::available_parallelism, time::Duration};

use parking_lot::{Condvar, Mutex};

use crate::model::time::Stopwatch;

/// How far queries give way: a tenth of the share of a thread that does not.
const NICENESS: i32 = 10;
/// How long a query evaluates while others wait.
const SLICE: Duration = Duration::from_millis(5);
/// Slices after which a query is a long one.
const SHORT_SLICES: u32 = 4;

/// See the module.
#[derive(Debug, Clone)]
pub struct Turns(Arc<Gates>);

#[derive(Debug)]
struct Gates {
    turns: Gate,
    /// The places of long queries.
    long: Gate,
}

impl Turns {
    /// So many evaluations at a time.
    pub fn new(at_a_time: usize) -> Self {
        let places = at_a_time.max(1);
        Self(Arc::new(Gates { turns: Gate::new(places), long: Gate::new(places) }))
    }

    /// As many as leave half of the cores to ingest.
    pub fn for_this_machine() -> Self {
        Self::new(available_parallelism().map_or(1, usize::from) / 2)
    }

    /// Waits for a turn. The thread is nice from then on.
    pub(super) fn take(&self) -> Turn<'_> {
        give_way();
        self.0.turns.enter();
        Turn { gates: &self.0, slices: Cell::new(0), slice: Cell::new(Stopwatch::start()) }
    }
}

/// Lets ingest go first: Linux has a niceness for each thread, and those that take turns only answer
/// queries.
fn give_way() {
    thread_local! {
        static IS_NICE: Cell<bool> = const { Cell::new(false) };
    }
    if IS_NICE.replace(true) {
        return;
    }
    if let Err(cause) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%cause, "queries will not give way to ingest");
    }
}

/// One query's turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    gates: &'a Gates,
    /// Slices that are over.
    slices: Cell<u32>,
    slice: Cell<Stopwatch>,
}

impl Turn<'_> {
    /// Lets those that wait go first when the slice is over. Not to be called with a lock held.
    pub(super) fn pass(&self) {
        if self.slice.get().elapsed() < SLICE {
            return;
        }
        self.slices.set(self.slices.get().saturating_add(1));
        let Gates { turns, long } = self.gates;
        if self.slices.get() == SHORT_SLICES {
            turns.leave();
            long.enter();
            turns.enter();
        } else if turns.is_waited_for() {
            turns.leave();
            turns.enter();
        }
        self.slice.set(Stopwatch::start());
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.gates.turns.leave();
        if self.slices.get() >= SHORT_SLICES {
            self.gates.long.leave();
        }
    }
}

/// Places that are given in the order in which they were asked for.
#[derive(Debug)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// The ticket that is next, and the one to be given out next.
    serving: u64,
    tickets: u64,
}

impl Gate {
    fn new(places: usize) -> Self {
        let state = State { free: places, serving: 0, tickets: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn enter(&self) {
        let mut state = self.state.lock();
        let ticket = state.tickets;
        state.tickets += 1;
        self.changed.wait_while(&mut state, |state| state.serving != ticket || state.free == 0);
        state.serving += 1;
        state.free -= 1;
        // Another place may be free for the next.
        self.changed.notify_all();
    }

    fn leave(&self) {
        self.state.lock().free += 1;
        self.changed.notify_all();
    }

    fn is_waited_for(&self) -> bool {
        let state = self.state.lock();
        state.serving < state.tickets
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn all_get_their_turns_and_never_too_many_at_a_time() {
        let turns = Turns::new(2);
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            running.fetch_sub(1, Ordering::SeqCst);
        };
        std::thread::scope(|scope| {
            for long in [false, true, false, true, true, true] {
                let (turns, work) = (&turns, &work);
                scope.spawn(move || {
                    let turn = turns.take();
                    let slices = if long { SHORT_SLICES + 2 } else { 3 };
                    while turn.slices.get() < slices {
                        work();
                        turn.pass();
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 2);
        for gate in [&turns.0.turns, &turns.0.long] {
            let state = gate.state.lock();
            assert_eq!((state.free, state.serving), (2, state.tickets));
        }
    }

    #[test]
    fn a_short_query_goes_in_between_a_long_one() {
        let turns = Turns::new(1);
        let long = turns.take();
        while long.slices.get() < SHORT_SLICES {
            long.pass();
        }
        let is_done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                drop(turns.take());
                is_done.store(1, Ordering::SeqCst);
            });
            // It ends only because the long one passes its turn on.
            while is_done.load(Ordering::SeqCst) == 0 {
                long.pass();
                std::thread::yield_now();
            }
        });
    }
}
