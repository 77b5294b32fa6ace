//! Turns: of the queries under way few evaluate at a time, and they take turns.
//!
//! An evaluation holds the catalog's lock for moments. Were there more evaluations than cores, one
//! of them would lose its core in such a moment, and the writer would wait until it is scheduled
//! again. Short queries go in between the slices of long ones; of long ones, which hold much
//! memory, one ends before the next goes on.

use std::{
    cell::Cell, collections::VecDeque, sync::Arc, thread::available_parallelism, time::Duration,
};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::clock::Stopwatch;

/// How far queries give way: a tenth of the share of a thread that does not.
const NICENESS: i32 = 10;
/// How long a query evaluates while others wait.
const SLICE: Duration = Duration::from_millis(5);
/// Slices after which a query is a long one.
const SHORT_SLICES: u32 = 4;
/// How often one that waits looks whether to give up.
const GIVE_UP_CHECK: Duration = Duration::from_millis(20);

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

    /// Waits for a turn, at most until `give_up` says so. The thread is nice from then on.
    pub(super) fn take(&self, give_up: &dyn Fn() -> bool) -> Option<Turn<'_>> {
        give_way();
        self.0.turns.enter(give_up).then(|| Turn {
            gates: &self.0,
            holds: Cell::new(Places { turn: true, long: false }),
            slices: Cell::new(0),
            slice: Cell::new(Stopwatch::start()),
        })
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
    holds: Cell<Places>,
    /// Slices that are over.
    slices: Cell<u32>,
    slice: Cell<Stopwatch>,
}

/// What a turn holds of the gates. After a wait that was given up it is nothing.
#[derive(Debug, Clone, Copy)]
struct Places {
    turn: bool,
    long: bool,
}

impl Turn<'_> {
    /// Lets those that wait go first when the slice is over, and waits for the next turn, at most
    /// until `give_up` says so. False when it was given up: the query must end. Not to be called
    /// with a lock held.
    pub(super) fn pass(&self, give_up: &dyn Fn() -> bool) -> bool {
        let mut holds = self.holds.get();
        if !holds.turn || self.slice.get().elapsed() < SLICE {
            return holds.turn;
        }
        self.slices.set(self.slices.get().saturating_add(1));
        let Gates { turns, long } = self.gates;
        let is_long = self.slices.get() >= SHORT_SLICES && !holds.long;
        if is_long || turns.is_waited_for() {
            turns.leave();
            holds.long |= is_long && long.enter(give_up);
            holds.turn = (holds.long || !is_long) && turns.enter(give_up);
            self.holds.set(holds);
        }
        self.slice.set(Stopwatch::start());
        holds.turn
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let holds = self.holds.get();
        if holds.turn {
            self.gates.turns.leave();
        }
        if holds.long {
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
    /// The tickets of those that wait, in order, and the one to be given out next.
    waiting: VecDeque<u64>,
    tickets: u64,
}

impl Gate {
    fn new(places: usize) -> Self {
        let state = State { free: places, waiting: VecDeque::new(), tickets: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits for a place; false when the wait was given up.
    fn enter(&self, give_up: &dyn Fn() -> bool) -> bool {
        let mut state = self.state.lock();
        let ticket = state.tickets;
        state.tickets += 1;
        state.waiting.push_back(ticket);
        while state.free == 0 || state.waiting.front() != Some(&ticket) {
            let waited = self.changed.wait_for(&mut state, GIVE_UP_CHECK);
            if waited.timed_out() && MutexGuard::unlocked(&mut state, give_up) {
                state.waiting.retain(|own| *own != ticket);
                // Whoever waits behind it may be the next.
                self.changed.notify_all();
                return false;
            }
        }
        state.waiting.pop_front();
        state.free -= 1;
        // Another place may be free for the next.
        self.changed.notify_all();
        true
    }

    fn leave(&self) {
        self.state.lock().free += 1;
        self.changed.notify_all();
    }

    fn is_waited_for(&self) -> bool {
        !self.state.lock().waiting.is_empty()
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
                    let turn = turns.take(&|| false).unwrap();
                    let slices = if long { SHORT_SLICES + 2 } else { 3 };
                    while turn.slices.get() < slices {
                        work();
                        assert!(turn.pass(&|| false));
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 2);
        for gate in [&turns.0.turns, &turns.0.long] {
            let state = gate.state.lock();
            assert_eq!((state.free, state.waiting.len()), (2, 0));
        }
    }

    #[test]
    fn a_short_query_goes_in_between_a_long_one() {
        let turns = Turns::new(1);
        let long = turns.take(&|| false).unwrap();
        while long.slices.get() < SHORT_SLICES {
            assert!(long.pass(&|| false));
        }
        let is_done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                drop(turns.take(&|| false));
                is_done.store(1, Ordering::SeqCst);
            });
            // It ends only because the long one passes its turn on.
            while is_done.load(Ordering::SeqCst) == 0 {
                long.pass(&|| false);
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn a_wait_can_be_given_up_and_holds_up_nobody() {
        let turns = Turns::new(1);
        let holder = turns.take(&|| false).unwrap();
        assert!(turns.take(&|| true).is_none(), "the only place is taken");
        // One that gives up while it is passed over has no place, and gives none back.
        let asked = Cell::new(0);
        let late = || asked.replace(asked.get() + 1) > 0;
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let next = turns.take(&|| false).unwrap();
                while done.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
                drop(next);
            });
            while !turns.0.turns.is_waited_for() {
                std::thread::yield_now();
            }
            while holder.pass(&late) {
                std::thread::yield_now();
            }
            assert!(!holder.pass(&|| false), "what gave up has no place to pass on");
            done.store(1, Ordering::SeqCst);
        });
        drop(holder);
        for gate in [&turns.0.turns, &turns.0.long] {
            let state = gate.state.lock();
            assert_eq!((state.free, state.waiting.len()), (1, 0));
        }
    }
}
