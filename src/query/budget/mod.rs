//! What one query may take of the daemon: turns on the cores, bytes of the memory that all queries
//! share, and time.
//!
//! Must never know: what is asked, who asks (a request, or a role of the daemon), settings.
//!
//! Every query is given a [`Budget`] and calls two of its methods. [`Budget::check`] stands where work
//! comes in pieces of a few hundred microseconds: before each series, each chunk of names, rows or
//! cells. It waits for a turn, lets others go first when a turn is over, and ends a query whose time
//! is over or for which nobody waits any more. [`Budget::take`] stands before what is large is built.
//! Neither is called with a lock held.

mod limits;
mod memory;
pub(super) mod remembered;
mod retry;
mod scheduler;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

pub use limits::QueryLimits;
pub use memory::Reservation;
pub use retry::run_until_settled;
pub use scheduler::Scheduler;

use crate::clock::Stopwatch;
use memory::MemoryPool;
use remembered::Remembered;
use scheduler::Turn;

/// What all queries share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct QueryResources {
    scheduler: Scheduler,
    memory: MemoryPool,
    remembered: Remembered,
}

impl QueryResources {
    /// Turns as they are given out there, and so many bytes; for the queries of one store.
    pub fn new(scheduler: Scheduler, memory_max: usize) -> Self {
        let (memory, remembered) = (MemoryPool::new(memory_max), Remembered::new());
        Self { scheduler, memory, remembered }
    }

    /// What one query may take, which has so much time from now on, its wait for a turn included.
    pub fn budget(&self, time_max: Duration) -> Budget {
        Budget(Some(Limited {
            turn: self.scheduler.turn(),
            memory: self.memory.reservation(),
            remembered: self.remembered.clone(),
            watch: Stopwatch::start(),
            time_max,
            is_abandoned: Arc::default(),
        }))
    }

    /// Bytes that no query has taken.
    pub fn memory_free(&self) -> usize {
        self.memory.free()
    }
}

/// What one query may take. What it has taken is given back when it is dropped.
#[derive(Debug)]
pub struct Budget(Option<Limited>);

#[derive(Debug)]
struct Limited {
    turn: Turn,
    memory: Reservation,
    remembered: Remembered,
    watch: Stopwatch,
    time_max: Duration,
    is_abandoned: Arc<AtomicBool>,
}

/// Why a query must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OverBudget {
    /// Its time is over.
    #[error("the query timed out")]
    Time,
    /// The client has gone.
    #[error("nobody waits for the answer")]
    Abandoned,
    /// The queries under way have taken the memory that there is.
    #[error("the queries under way take all memory that they may")]
    Memory,
}

/// Who waits for an answer: when this is dropped, the query ends at its next check.
#[derive(Debug)]
pub struct Waiter(Arc<AtomicBool>);

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Budget {
    /// All that there is, without turns: for tools that own their process, and tests.
    pub const UNLIMITED: Self = Self(None);

    /// So many bytes and no other bound, for tools and tests.
    pub fn of_memory(memory_max: usize) -> Self {
        QueryResources::new(Scheduler::for_this_machine(), memory_max).budget(Duration::MAX)
    }

    /// Goes on with a turn, or says why the query must end. Cheap while the turn lasts.
    ///
    /// # Errors
    /// When the time is over, or nobody waits for the answer.
    pub fn check(&self) -> Result<(), OverBudget> {
        let Some(own) = &self.0 else { return Ok(()) };
        // The clock is read once: this stands before each of many small series.
        let now = Stopwatch::start();
        own.is_over_at(&now)?;
        own.turn.hold(&now, || own.is_over_at(&Stopwatch::start()))
    }

    /// Takes so many bytes until the query ends.
    ///
    /// # Errors
    /// When there are not so many left.
    pub fn take(&self, bytes: usize) -> Result<(), OverBudget> {
        let is_taken = self.0.as_ref().is_none_or(|own| own.memory.take(bytes));
        if is_taken { Ok(()) } else { Err(OverBudget::Memory) }
    }

    /// Bytes taken.
    pub fn taken(&self) -> usize {
        self.0.as_ref().map_or(0, |own| own.memory.bytes())
    }

    /// Gives back what was taken beyond so many bytes.
    pub fn keep(&self, bytes: usize) {
        if let Some(own) = &self.0 {
            own.memory.keep(bytes);
        }
    }

    /// What queries before this one found out.
    pub(super) fn remembered(&self) -> Option<&Remembered> {
        self.0.as_ref().map(|own| &own.remembered)
    }

    /// Lets the query end when nobody waits for it any more.
    pub fn waiter(&self) -> Waiter {
        Waiter(self.0.as_ref().map_or_else(Arc::default, |own| own.is_abandoned.clone()))
    }

    /// Gives the turn back; the answer keeps what memory it takes until it is read.
    pub fn into_reservation(self) -> Option<Reservation> {
        self.0.map(|own| own.memory)
    }
}

impl Limited {
    fn is_over_at(&self, now: &Stopwatch) -> Result<(), OverBudget> {
        if self.is_abandoned.load(Ordering::Relaxed) {
            return Err(OverBudget::Abandoned);
        }
        if self.watch.until(now) >= self.time_max { Err(OverBudget::Time) } else { Ok(()) }
    }
}
