//! The checkpointer: moves the catalog into documents, on a timer and when asked.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use actix::prelude::{Actor, ActorContext, AsyncContext, Context, Handler, Message, SpawnHandle};
use parking_lot::Mutex;

use super::{Lifeline, Stop};
use crate::{
    clock::{Clock, Stopwatch},
    model::UnixMillis,
    store::{CheckpointBounds, CheckpointReport, Store},
    telemetry::{Condition, Health, Metrics},
};

/// A checkpoint that failed is tried again after this time.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Checkpoints that are remembered.
const REMEMBERED: usize = 20;

/// The last checkpoints that were done. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct CheckpointHistory(Arc<Mutex<VecDeque<PastCheckpoint>>>);

/// A checkpoint that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastCheckpoint {
    /// The time at which it began.
    pub at: UnixMillis,
    /// The time that it took.
    pub elapsed_ms: u64,
    /// Cells that it merged into the head and into documents.
    pub cells: u64,
    /// Documents that it wrote.
    pub documents: u64,
    /// Bytes that it wrote to the head and to documents.
    pub bytes_written: u64,
}

impl CheckpointHistory {
    /// The newest first.
    pub fn last(&self) -> Vec<PastCheckpoint> {
        self.0.lock().iter().copied().collect()
    }

    fn note(&self, done: PastCheckpoint) {
        let mut all = self.0.lock();
        all.truncate(REMEMBERED - 1);
        all.push_front(done);
    }
}

/// Asks for a checkpoint now: memory is short, the journal is long, or a start has much to replay.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub struct CheckpointNow;

/// The parts of the checkpointer.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types say it")]
pub struct CheckpointerParts {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub metrics: Metrics,
    pub health: Health,
    pub lifeline: Lifeline,
    pub interval: Duration,
    pub idle_after: Option<Duration>,
    pub bounds: CheckpointBounds,
    pub history: CheckpointHistory,
}

/// The role. It blocks its thread while it writes, so it needs an arbiter of its own.
#[derive(Debug)]
pub struct Checkpointer {
    parts: CheckpointerParts,
    /// The only checkpoint that is to come.
    next: Option<SpawnHandle>,
    turn: Turn,
}

/// Why the next checkpoint comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The interval will be over, counted from the end of the last one.
    Interval,
    /// One was asked for.
    Asked,
    /// The last one failed. No request makes the retry come sooner.
    Retry,
}

impl Checkpointer {
    /// A checkpointer that has not begun.
    pub fn new(parts: CheckpointerParts) -> Self {
        Self { parts, next: None, turn: Turn::Interval }
    }

    /// Returns whether it was done.
    fn checkpoint(&self) -> bool {
        let parts = &self.parts;
        let watch = Stopwatch::start();
        let moment = parts.clock.moment();
        match parts.store.checkpoint(moment) {
            Ok(report) => {
                let elapsed_ms = watch.millis();
                parts.metrics.checkpoint_duration.observe(watch.seconds());
                parts.health.clear(Condition::Checkpoint);
                let CheckpointReport { documents, through, cells, bytes_written } = report;
                tracing::info!(documents, through, elapsed_ms, "wrote a checkpoint");
                let at = moment.clock;
                let done = PastCheckpoint { at, elapsed_ms, cells, documents, bytes_written };
                parts.history.note(done);
                true
            }
            Err(cause) => {
                parts.metrics.checkpoint_errors.inc();
                parts.health.raise_fault(Condition::Checkpoint, &cause);
                let cause: &dyn std::error::Error = &cause;
                tracing::error!(cause, "a checkpoint failed; it will be tried again");
                false
            }
        }
    }

    /// Packs counters that had no sample for long.
    fn pack_idle(&self) {
        if let Some(idle_after) = self.parts.idle_after {
            let now = self.parts.clock.moment().believed;
            self.parts.store.pack_idle(now.minus(idle_after.as_millis() as i64));
        }
    }

    /// Puts the next checkpoint in place of the one that was to come. It waits behind the messages
    /// that are there, so a stop never waits for more than the one under way.
    fn schedule(&mut self, turn: Turn, ctx: &mut Context<Self>) {
        if let Some(other) = self.next.take() {
            ctx.cancel_future(other);
        }
        let after = match turn {
            Turn::Interval => self.parts.interval,
            Turn::Asked => Duration::ZERO,
            Turn::Retry => RETRY_AFTER,
        };
        self.turn = turn;
        self.next = Some(ctx.run_later(after, |actor, ctx| {
            let is_done = actor.checkpoint();
            if is_done {
                actor.pack_idle();
            }
            actor.schedule(if is_done { Turn::Interval } else { Turn::Retry }, ctx);
        }));
    }
}

impl Actor for Checkpointer {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.schedule(Turn::Interval, ctx);
        // One that was cut short by the end of the last process is finished first.
        ctx.notify(CheckpointNow);
    }
}

impl Handler<CheckpointNow> for Checkpointer {
    type Result = ();

    fn handle(&mut self, _: CheckpointNow, ctx: &mut Self::Context) {
        let parts = &self.parts;
        // Several requests may have waited while the last checkpoint ran.
        let is_due =
            || parts.store.is_checkpoint_cut_short() || parts.store.needs_checkpoint(&parts.bounds);
        if self.turn == Turn::Interval && is_due() {
            self.schedule(Turn::Asked, ctx);
        }
    }
}

impl Handler<Stop> for Checkpointer {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.checkpoint();
        self.parts.lifeline.release();
        ctx.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_checkpoints_are_remembered_the_newest_first() {
        let history = CheckpointHistory::default();
        for n in 0..30 {
            let at = UnixMillis(n);
            let (cells, documents, bytes_written) = (2, 3, 4);
            history.note(PastCheckpoint { at, elapsed_ms: 1, cells, documents, bytes_written });
        }
        let times: Vec<_> = history.last().iter().map(|own| own.at.0).collect();
        assert_eq!(times, (10..30).rev().collect::<Vec<_>>());
    }
}
