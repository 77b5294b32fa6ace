//! The preallocator: creates the partition and the shells of each coming period ahead of time.

use std::{sync::Arc, time::Duration};

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};
use parking_lot::Mutex;

use super::{Lifeline, Stop};
use crate::{
    clock::Clock,
    model::{Granularity, SeriesId, UnixMillis},
    policy::preallocation,
    store::{DocumentLayout, Store, StoreError},
    telemetry::{Condition, Health},
};

/// The interval between two checks for due shells.
const TICK: Duration = Duration::from_secs(1);
/// The number of shells in one transaction, so that a checkpoint never waits long for it.
const SHELLS_PER_TRANSACTION: usize = 2000;

/// The preallocated shells by granularity. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct ShellsAhead(Arc<Mutex<Vec<Option<ShellsMade>>>>);

/// The shells of a granularity's coming documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShellsMade {
    /// The start of the documents.
    pub start: UnixMillis,
    /// The end of the documents.
    pub end: UnixMillis,
    /// The number of documents.
    pub count: usize,
}

impl ShellsAhead {
    /// Returns the shells of each configured granularity whose period has not begun.
    pub fn made(&self, now: UnixMillis) -> Vec<Option<ShellsMade>> {
        let made = self.0.lock();
        made.iter().map(|shells| shells.filter(|shells| shells.start > now)).collect()
    }

    fn note(&self, index: usize, made: ShellsMade) {
        let mut all = self.0.lock();
        if all.len() <= index {
            all.resize(index + 1, None);
        }
        all[index] = Some(made);
    }
}

/// The parts of the role.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types say it")]
pub struct PreallocatorParts {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub health: Health,
    pub lifeline: Lifeline,
    /// The maximum number of documents per second.
    pub per_second: u32,
    /// The maximum size of all shells of coming periods, in bytes.
    pub bytes_max: u64,
    pub ahead: ShellsAhead,
}

/// The role. It blocks its thread while it writes, so it needs an arbiter of its own.
#[derive(Debug)]
pub struct Preallocator {
    parts: PreallocatorParts,
    /// The progress by granularity.
    progress: Vec<Progress>,
}

/// The document period for which shells are created.
#[derive(Debug, Clone, Default)]
struct Progress {
    document: Option<UnixMillis>,
    /// The series that were live when the current period's second half began, within the budget.
    live: Vec<SeriesId>,
    /// The size of the shells in bytes.
    bytes: u64,
    done: usize,
}

impl Preallocator {
    /// Creates the role without starting it.
    pub fn new(parts: PreallocatorParts) -> Self {
        let progress = vec![Progress::default(); parts.store.granularities().count()];
        Self { parts, progress }
    }

    fn tick(&mut self) {
        match self.preallocate() {
            Ok(()) => self.parts.health.clear(Condition::Preallocation),
            Err(cause) => {
                self.parts.health.raise_fault(Condition::Preallocation, &cause);
                let cause: &dyn std::error::Error = &cause;
                tracing::warn!(cause, "preallocation failed and will be retried");
            }
        }
    }

    /// Creates the shells that are due, up to the rate limit.
    fn preallocate(&mut self) -> Result<(), StoreError> {
        let now = self.parts.clock.moment();
        let mut budget = self.parts.per_second as usize;
        let store = self.parts.store.clone();
        for (index, granularity) in store.granularities().indexed() {
            let progress = &mut self.progress[index.0];
            let Some(due) = preallocation::shells_due(granularity, progress.live.len(), now) else {
                continue;
            };
            if progress.document != Some(due.document) {
                let since = preallocation::live_since(granularity, now.clock);
                let live = store.live_series(since);
                self.plan(index.0, granularity, due.document, live, now.clock);
                continue; // the next tick knows how many are due
            }
            while progress.done < due.count && budget > 0 {
                let take = SHELLS_PER_TRANSACTION.min(budget).min(due.count - progress.done);
                let series = &progress.live[progress.done..progress.done + take];
                store.preallocate(index, due.document, series)?;
                progress.done += take;
                let (start, count) = (due.document, progress.done);
                let end = granularity.document.next(start);
                self.parts.ahead.note(index.0, ShellsMade { start, end, count });
                budget -= take;
                if progress.done == progress.live.len() {
                    let (granularity, documents) = (&granularity.name, progress.done);
                    let start = due.document;
                    tracing::info!(granularity, documents, %start, "preallocated documents");
                }
            }
        }
        Ok(())
    }
}

impl Preallocator {
    /// Begins a period; documents beyond the budget are created when samples arrive.
    fn plan(
        &mut self,
        index: usize,
        granularity: &Granularity,
        document: UnixMillis,
        mut live: Vec<SeriesId>,
        now: UnixMillis,
    ) {
        let slots = granularity.slot_index(document, granularity.document.next(document));
        let shell_bytes = DocumentLayout::new(slots, granularity.width_ms).length() as u64;
        let is_other = |(other, progress): &(usize, &Progress)| {
            *other != index && progress.document.is_some_and(|document| document > now)
        };
        let others = self.progress.iter().enumerate().filter(is_other);
        let other_bytes = others.map(|(_, progress)| progress.bytes).sum();
        let bytes_max = self.parts.bytes_max;
        let count = preallocation::affordable(live.len(), shell_bytes, other_bytes, bytes_max);
        if count < live.len() {
            let (granularity, without) = (&granularity.name, live.len() - count);
            tracing::info!(
                granularity,
                without,
                "series without shells: the shells of coming periods take 1 GiB"
            );
        }
        live.truncate(count);
        let bytes = count as u64 * shell_bytes;
        self.progress[index] = Progress { document: Some(document), live, bytes, done: 0 };
    }
}

impl Actor for Preallocator {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(TICK, |role, _| role.tick());
    }
}

impl Handler<Stop> for Preallocator {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.parts.lifeline.release();
        ctx.stop();
    }
}
