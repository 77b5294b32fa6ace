//! The preallocator: makes the partition and the shells of each coming period ahead of time.

use std::{sync::Arc, time::Duration};

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{Condition, Health, Lifeline, Stop};
use crate::{
    model::Clock,
    pipeline::preallocation,
    store::{Store, StoreError},
};

/// How often shells are looked for that are due.
const TICK: Duration = Duration::from_secs(1);
/// Shells written in one transaction, so that a checkpoint never waits long for it.
const SHELLS_PER_TRANSACTION: usize = 2000;

/// See the module. It blocks its thread while it writes, so it needs an arbiter of its own.
#[derive(Debug)]
pub struct Preallocator {
    store: Store,
    clock: Arc<dyn Clock>,
    health: Health,
    lifeline: Lifeline,
    per_second: u32,
    /// By granularity: the document period that is being filled, and how many are done.
    progress: Vec<(i64, usize)>,
}

impl Preallocator {
    /// Makes the role; nothing runs yet.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        health: Health,
        lifeline: Lifeline,
        per_second: u32,
    ) -> Self {
        let progress = vec![(i64::MIN, 0); store.granularities().count()];
        Self { store, clock, health, lifeline, per_second, progress }
    }

    fn tick(&mut self) {
        match self.preallocate() {
            Ok(()) => self.health.clear(Condition::Preallocation),
            Err(cause) => {
                self.health.raise(Condition::Preallocation, cause.to_string());
                let cause: &dyn std::error::Error = &cause;
                tracing::warn!(cause, "preallocation failed; it will be tried again");
            }
        }
    }

    /// Makes the shells that are due, at most as many as a second may.
    fn preallocate(&mut self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut budget = self.per_second as usize;
        for level in 0..self.progress.len() {
            let granularity = &self.store.granularities().levels()[level];
            let Some(due) = preallocation::shells_due(granularity, 0, now) else { continue };
            let live = self.store.live_series(preallocation::live_since(granularity, now));
            let count =
                preallocation::shells_due(granularity, live.len(), now).map_or(0, |due| due.count);
            let (period, done) = &mut self.progress[level];
            if *period != due.document.0 {
                (*period, *done) = (due.document.0, 0);
            }
            while *done < count && budget > 0 {
                let take = SHELLS_PER_TRANSACTION.min(budget).min(count - *done);
                self.store.preallocate(level, due.document, &live[*done..*done + take])?;
                *done += take;
                budget -= take;
                if *done == live.len() {
                    let (granularity, documents) = (&granularity.name, *done);
                    tracing::info!(granularity, documents, start = %due.document, "preallocated documents");
                }
            }
        }
        Ok(())
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
        self.lifeline.release();
        ctx.stop();
    }
}
