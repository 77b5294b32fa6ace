//! The checkpointer: moves the catalog into documents, on a timer and when asked.

use std::{sync::Arc, time::Duration};

use actix::prelude::{Actor, ActorContext, AsyncContext, Context, Handler, Message};

use super::{Condition, Health, Lifeline, Stop};
use crate::{
    model::{Clock, time::Stopwatch},
    store::{CheckpointBounds, Store},
    telemetry::Metrics,
};

/// A checkpoint that failed is tried again after this time.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Asks for a checkpoint now, because memory is short.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub struct CheckpointNow;

/// See the module. It blocks its thread while it writes, so it needs an arbiter of its own.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Checkpointer {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub metrics: Metrics,
    pub health: Health,
    pub lifeline: Lifeline,
    pub interval: Duration,
    pub bounds: CheckpointBounds,
}

impl Checkpointer {
    /// Returns whether it was done.
    fn checkpoint(&self) -> bool {
        let watch = Stopwatch::start();
        match self.store.checkpoint(self.clock.moment()) {
            Ok(report) => {
                let elapsed_ms = watch.millis();
                self.metrics.checkpoint_duration.observe(watch.seconds());
                self.health.clear(Condition::Checkpoint);
                let (documents, through) = (report.documents, report.through);
                tracing::info!(documents, through, elapsed_ms, "wrote a checkpoint");
                true
            }
            Err(cause) => {
                self.metrics.checkpoint_errors.inc();
                self.health.raise(Condition::Checkpoint, cause.to_string());
                let cause: &dyn std::error::Error = &cause;
                tracing::error!(cause, "a checkpoint failed; it will be tried again");
                false
            }
        }
    }
}

impl Checkpointer {
    fn checkpoint_or_retry(&mut self, ctx: &mut Context<Self>) {
        if !self.checkpoint() {
            ctx.notify_later(CheckpointNow, RETRY_AFTER);
        }
    }
}

impl Actor for Checkpointer {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(self.interval, Self::checkpoint_or_retry);
        // One that was cut short by the end of the last process is finished first.
        ctx.notify(CheckpointNow);
    }
}

impl Handler<CheckpointNow> for Checkpointer {
    type Result = ();

    fn handle(&mut self, _: CheckpointNow, ctx: &mut Self::Context) {
        // Several requests may have waited while the last checkpoint ran.
        if self.store.is_checkpoint_cut_short() || self.store.needs_checkpoint(&self.bounds) {
            self.checkpoint_or_retry(ctx);
        }
    }
}

impl Handler<Stop> for Checkpointer {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.checkpoint();
        self.lifeline.release();
        ctx.stop();
    }
}
