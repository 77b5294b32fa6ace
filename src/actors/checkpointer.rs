//! The checkpointer: moves the catalog into the head, and complete periods into documents, on a
//! timer and on request.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use actix::prelude::{Actor, ActorContext, AsyncContext, Context, Handler, Message, SpawnHandle};
use parking_lot::Mutex;

use super::{Lifeline, SettingsChanged, SpaceKeeper, Stop};
use crate::{
    clock::{Clock, Stopwatch},
    kept::LiveValue,
    model::UnixMillis,
    store::{CheckpointBounds, CheckpointReport, Store},
    telemetry::{Condition, Health, Metrics},
};

/// The delay before a failed checkpoint is repeated. It doubles with each further failure, because
/// a retry writes its segments from the beginning.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// The maximum delay before a failed checkpoint is repeated.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// The interval between two measurements of disk space.
const SPACE_INTERVAL: Duration = Duration::from_secs(5);

/// The maximum number of checkpoints in the history.
const HISTORY_MAX: usize = 20;

/// The history of checkpoints. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct CheckpointHistory(Arc<Mutex<VecDeque<PastCheckpoint>>>);

/// A completed checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastCheckpoint {
    /// The time at which it began.
    pub at: UnixMillis,
    /// The duration in milliseconds.
    pub elapsed_ms: u64,
    /// The number of cells merged into the head and into documents.
    pub cells: u64,
    /// The number of documents written.
    pub documents: u64,
    /// The number of bytes written to the head and to documents.
    pub bytes_written: u64,
}

impl CheckpointHistory {
    /// Returns the history, the newest checkpoint first.
    pub fn newest_first(&self) -> Vec<PastCheckpoint> {
        self.0.lock().iter().copied().collect()
    }

    fn note(&self, done: PastCheckpoint) {
        let mut all = self.0.lock();
        all.truncate(HISTORY_MAX - 1);
        all.push_front(done);
    }
}

/// A request for a checkpoint: memory is short, the journal is long, or a start had much to replay.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub struct CheckpointNow;

/// The parts of the checkpointer.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct CheckpointerParts {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub metrics: Metrics,
    pub health: Health,
    pub lifeline: Lifeline,
    pub interval: LiveValue<Duration>,
    pub idle_after: Option<Duration>,
    pub bounds: CheckpointBounds,
    pub history: CheckpointHistory,
    pub space: Option<SpaceKeeper>,
}

/// The actor of this role. It blocks its thread while it writes, so it needs its own arbiter.
#[derive(Debug)]
pub struct Checkpointer {
    parts: CheckpointerParts,
    /// The only scheduled checkpoint.
    next: Option<SpawnHandle>,
    trigger: Trigger,
}

/// The trigger of the next checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trigger {
    /// The interval, or less, has passed since the end of the last checkpoint.
    Interval,
    /// A request.
    Requested,
    /// The number of checkpoints that failed in a row. Requests do not make the retry earlier.
    Retry(u32),
}

impl Trigger {
    /// Returns the trigger of the checkpoint after this one.
    fn next(self, is_done: bool) -> Self {
        match self {
            _ if is_done => Self::Interval,
            Self::Retry(failures) => Self::Retry(failures.saturating_add(1)),
            Self::Interval | Self::Requested => Self::Retry(1),
        }
    }

    /// Returns the delay before the checkpoint.
    fn delay(self, interval: Duration) -> Duration {
        match self {
            Self::Interval => interval,
            Self::Requested => Duration::ZERO,
            Self::Retry(failures) => {
                let doublings = failures.saturating_sub(1).min(u32::BITS - 1);
                RETRY_AFTER.saturating_mul(1 << doublings).min(RETRY_AFTER_MAX)
            }
        }
    }
}

impl Checkpointer {
    /// Creates the role without starting it.
    pub fn new(parts: CheckpointerParts) -> Self {
        Self { parts, next: None, trigger: Trigger::Interval }
    }

    /// Runs a checkpoint; returns true on success.
    fn checkpoint(&mut self) -> bool {
        let parts = &mut self.parts;
        let watch = Stopwatch::start();
        let moment = parts.clock.moment();
        match parts.store.checkpoint(moment) {
            Ok(report) => {
                let elapsed_ms = watch.millis();
                parts.metrics.checkpoint_duration.observe(watch.seconds());
                parts.health.clear(Condition::Checkpoint);
                if let Some(space) = &mut parts.space {
                    space.note_checkpoint(moment.latest());
                }
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
                tracing::error!(cause, "a checkpoint failed and will be retried");
                false
            }
        }
    }

    /// Reserves and measures disk space.
    fn keep_space(&mut self) {
        if let Some(space) = &mut self.parts.space {
            space.run(self.parts.clock.moment().believed);
        }
    }

    /// Compresses the states of counters without a recent sample.
    fn pack_idle(&self) {
        if let Some(idle_after) = self.parts.idle_after {
            let now = self.parts.clock.moment().believed;
            self.parts.store.pack_idle(now.minus(idle_after.as_millis() as i64));
        }
    }

    /// Returns the time until the next checkpoint, at most an interval.
    fn aligned(&self, interval: Duration) -> Duration {
        let now = self.parts.clock.moment().believed;
        let interval_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
        let after = self.parts.store.checkpoint_after(now, interval_ms);
        u64::try_from(after).map_or(interval, Duration::from_millis)
    }

    /// Replaces the scheduled checkpoint. The new checkpoint is queued behind waiting messages, so
    /// a stop never waits for more than the running checkpoint.
    fn schedule(&mut self, trigger: Trigger, ctx: &mut Context<Self>) {
        if let Some(scheduled) = self.next.take() {
            ctx.cancel_future(scheduled);
        }
        self.trigger = trigger;
        let interval = *self.parts.interval.get();
        let after = trigger.delay(self.aligned(interval));
        self.next = Some(ctx.run_later(after, move |actor, ctx| {
            let is_done = actor.checkpoint();
            if is_done {
                actor.pack_idle();
            }
            actor.keep_space();
            actor.schedule(trigger.next(is_done), ctx);
        }));
    }
}

impl Actor for Checkpointer {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.schedule(Trigger::Interval, ctx);
        // The previous process may not have finished its last checkpoint.
        ctx.notify(CheckpointNow);
        self.keep_space();
        ctx.run_interval(SPACE_INTERVAL, |role, _| role.keep_space());
    }
}

impl Handler<CheckpointNow> for Checkpointer {
    type Result = ();

    fn handle(&mut self, _: CheckpointNow, ctx: &mut Self::Context) {
        let parts = &self.parts;
        // Several requests may have arrived during the last checkpoint.
        let is_due =
            || parts.store.is_checkpoint_cut_short() || parts.store.needs_checkpoint(&parts.bounds);
        if self.trigger == Trigger::Interval && is_due() {
            self.schedule(Trigger::Requested, ctx);
        }
    }
}

impl Handler<SettingsChanged> for Checkpointer {
    type Result = ();

    /// Counts the interval from now on, and checks the sizes at which a checkpoint is due.
    fn handle(&mut self, _: SettingsChanged, ctx: &mut Self::Context) {
        if self.trigger == Trigger::Interval {
            self.schedule(Trigger::Interval, ctx);
            ctx.notify(CheckpointNow);
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
    fn retries_of_a_failing_checkpoint_are_delayed_more_and_more() {
        let interval = Duration::from_mins(10);
        let mut trigger = Trigger::Requested;
        let delays: Vec<u64> = (0..6)
            .map(|_| {
                trigger = trigger.next(false);
                trigger.delay(interval).as_secs()
            })
            .collect();
        assert_eq!(delays, [5, 10, 20, 40, 60, 60]);
        assert_eq!(Trigger::Retry(u32::MAX).next(false).delay(interval), RETRY_AFTER_MAX);
        assert_eq!(trigger.next(true), Trigger::Interval);
    }

    #[test]
    fn the_last_checkpoints_are_remembered_the_newest_first() {
        let history = CheckpointHistory::default();
        for n in 0..30 {
            let at = UnixMillis(n);
            let (cells, documents, bytes_written) = (2, 3, 4);
            history.note(PastCheckpoint { at, elapsed_ms: 1, cells, documents, bytes_written });
        }
        let times: Vec<_> =
            history.newest_first().iter().map(|checkpoint| checkpoint.at.0).collect();
        assert_eq!(times, (10..30).rev().collect::<Vec<_>>());
    }
}
