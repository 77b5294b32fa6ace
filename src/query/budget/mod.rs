//! The budget of one query: its turns on the cores, its share of the memory for all queries, and
//! its time.
//!
//! Must never know: what is queried, the caller (a request, or a role of the daemon), settings.
//!
//! Every query receives a [`Budget`] and calls two of its methods. It calls [`Budget::check`]
//! between units of work of a few hundred microseconds: before each series, and before each chunk
//! of names, rows or cells. `check` waits for a turn, lets other queries run when the turn is over,
//! and ends a query whose time is over or whose client has disconnected. The query calls
//! [`Budget::reserve`] before it allocates a large block of memory. Neither method may be called
//! while a lock is held.

pub(super) mod cache;
mod limits;
mod memory;
mod retry;
mod scheduler;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

pub use limits::QueryLimits;
pub use memory::Reservation;
pub use retry::run_with_retries;
pub use scheduler::Scheduler;

use crate::{
    clock::Stopwatch,
    query::{
        error::{OverBudget, QueryError},
        shards::ShardsOfProject,
    },
};
use cache::QueryCache;
use memory::MemoryPool;
use scheduler::Turn;

/// The resources that all queries share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct QueryResources {
    scheduler: Scheduler,
    memory: MemoryPool,
    cache: QueryCache,
    others: Option<ShardsOfProject>,
}

impl QueryResources {
    /// Creates the resources for the queries of one store.
    pub fn new(scheduler: Scheduler, memory_max: usize) -> Self {
        let (memory, cache) = (MemoryPool::new(memory_max), QueryCache::new());
        Self { scheduler, memory, cache, others: None }
    }

    /// Returns the same cores and the same memory for another project, with a new, separate cache.
    pub fn of_project(&self, project: &str) -> Self {
        let others = self.others.as_ref().map(|others| others.of_project(project));
        Self { cache: QueryCache::new(), others, ..self.clone() }
    }

    /// Returns the resources of a store with other shards.
    #[must_use]
    pub fn with_others(self, others: Option<ShardsOfProject>) -> Self {
        Self { others, ..self }
    }

    /// Returns true if the store has other shards.
    pub fn has_others(&self) -> bool {
        self.others.is_some()
    }

    /// Creates the budget of a query. Its time limit includes waiting for a turn.
    pub fn budget(&self, time_max: Duration) -> Budget {
        Budget(Some(BudgetLimits {
            turn: self.scheduler.turn(),
            memory: self.memory.reservation(),
            cache: self.cache.clone(),
            others: self.others.clone(),
            watch: Stopwatch::start(),
            time_max,
            shards_max: Duration::MAX,
            is_abandoned: Arc::default(),
        }))
    }

    /// Changes the memory of all queries. Running queries keep what they have.
    pub fn set_memory_max(&self, memory_max: usize) {
        self.memory.set_total(memory_max);
    }

    /// Returns the number of free bytes.
    pub fn memory_free(&self) -> usize {
        self.memory.free()
    }
}

/// The resources of one query. Dropping the budget returns its memory.
#[derive(Debug)]
pub struct Budget(Option<BudgetLimits>);

#[derive(Debug)]
struct BudgetLimits {
    turn: Turn,
    memory: Reservation,
    cache: QueryCache,
    others: Option<ShardsOfProject>,
    watch: Stopwatch,
    time_max: Duration,
    /// The maximum time for which the query waits for other shards at a time.
    shards_max: Duration,
    is_abandoned: Arc<AtomicBool>,
}

/// A handle of the client. When it is dropped, the query ends at its next check.
#[derive(Debug)]
pub struct Waiter(Arc<AtomicBool>);

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Budget {
    /// A budget without limits, for tools with a process of their own, and for tests.
    pub const UNLIMITED: Self = Self(None);

    /// Creates a budget with limited memory and no other limits, for tools and tests.
    pub fn of_memory(memory_max: usize) -> Self {
        QueryResources::new(Scheduler::for_this_machine(), memory_max).budget(Duration::MAX)
    }

    /// Waits for a turn unless the query already holds a turn. Cheap during a turn.
    ///
    /// # Errors
    /// When the time is over, or the client has disconnected.
    pub fn check(&self) -> Result<(), OverBudget> {
        let Some(limits) = &self.0 else { return Ok(()) };
        // The clock is read only once, because a query of many small series checks once per series.
        let now = Stopwatch::start();
        limits.check_at(&now)?;
        limits.turn.hold(&now, || limits.check_at(&Stopwatch::start()))
    }

    /// Reserves memory until the query ends.
    ///
    /// # Errors
    /// When there is not enough free memory.
    pub fn reserve(&self, bytes: usize) -> Result<(), OverBudget> {
        let is_reserved = self.0.as_ref().is_none_or(|limits| limits.memory.reserve(bytes));
        if is_reserved { Ok(()) } else { Err(OverBudget::Memory) }
    }

    /// Returns the number of reserved bytes.
    pub fn reserved(&self) -> usize {
        self.0.as_ref().map_or(0, |limits| limits.memory.bytes())
    }

    /// Releases all but the first `bytes` bytes.
    pub fn shrink_to(&self, bytes: usize) {
        if let Some(limits) = &self.0 {
            limits.memory.shrink_to(bytes);
        }
    }

    /// Limits the time for which the query waits for other shards at a time.
    #[must_use]
    pub fn waiting_for_shards(mut self, shards_max: Duration) -> Self {
        if let Some(limits) = &mut self.0 {
            limits.shards_max = shards_max;
        }
        self
    }

    /// Returns the cache that queries share.
    pub(super) fn cache(&self) -> Option<&QueryCache> {
        self.0.as_ref().map(|limits| &limits.cache)
    }

    /// Returns the other shards of the store, and the time that they have for an answer.
    pub fn others(&self) -> Option<(&ShardsOfProject, Duration)> {
        let limits = self.0.as_ref()?;
        let left = limits.time_max.saturating_sub(limits.watch.elapsed());
        Some((limits.others.as_ref()?, left.min(limits.shards_max)))
    }

    /// Asks all other shards, and calls `own` for the answer of this shard meanwhile. Returns the
    /// answers in the order of shards, and reserves the memory of the others' answers.
    ///
    /// # Errors
    /// The error of `own`, or the first error of a shard.
    pub fn ask_shards(
        &self,
        kind: &str,
        question: &[u8],
        own: impl FnOnce() -> Result<Vec<u8>, QueryError>,
    ) -> Result<Vec<Vec<u8>>, QueryError> {
        let (own, others) = self.beside_shards(kind, question, own)?;
        Ok([own].into_iter().chain(others).collect())
    }

    /// Asks all other shards, and calls `own` meanwhile. Returns both results. The memory of the
    /// answers is reserved while they are read.
    ///
    /// # Errors
    /// See [`Self::ask_shards`].
    pub fn beside_shards<T>(
        &self,
        kind: &str,
        question: &[u8],
        own: impl FnOnce() -> Result<T, QueryError>,
    ) -> Result<(T, Vec<Vec<u8>>), QueryError> {
        let Some(limits) = &self.0 else { return Ok((own()?, Vec::new())) };
        let Some((others, time_left)) = self.others() else { return Ok((own()?, Vec::new())) };
        let memory = limits.memory.beside();
        let reserve = |bytes| memory.reserve(bytes);
        let (own, answers) = thread::scope(|scope| {
            let asked = scope.spawn(|| others.ask((kind, question), time_left, &reserve));
            let own = own();
            // Other queries run while this query waits.
            self.release_turn();
            let answers = asked.join();
            (own, answers.unwrap_or_else(|_| Err(QueryError::Busy("a query panicked".to_owned()))))
        });
        let (own, answers) = (own?, answers?);
        limits.memory.absorb(&memory);
        self.check()?;
        Ok((own, answers))
    }

    /// Ends the turn of the query, which waits for something else than a turn. The next check waits
    /// for another turn.
    pub(super) fn release_turn(&self) {
        if let Some(limits) = &self.0 {
            limits.turn.release();
        }
    }

    /// Returns a handle that ends the query when it is dropped.
    pub fn waiter(&self) -> Waiter {
        Waiter(self.0.as_ref().map_or_else(Arc::default, |limits| limits.is_abandoned.clone()))
    }

    /// Releases the turn and returns the reserved memory, which the answer uses until it is sent.
    pub fn into_reservation(self) -> Option<Reservation> {
        self.0.map(|limits| limits.memory)
    }
}

impl BudgetLimits {
    fn check_at(&self, now: &Stopwatch) -> Result<(), OverBudget> {
        if self.is_abandoned.load(Ordering::Relaxed) {
            return Err(OverBudget::Abandoned);
        }
        if self.watch.until(now) >= self.time_max { Err(OverBudget::Time) } else { Ok(()) }
    }
}
