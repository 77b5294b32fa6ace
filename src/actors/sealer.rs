//! The sealer: compresses the documents of ended partitions. While the clock is doubted, it uses
//! the trusted time, as retention does.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};
use parking_lot::{Condvar, Mutex};

use super::{Lifeline, Stop};
use crate::{
    clock::{Stopwatch, TrustedClock},
    kept::LiveValue,
    store::{SealReport, Store},
    telemetry::{Condition, Health},
};

/// The longest interval between two checks.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// The maximum rate of writes, because queries and checkpoints use the same disk.
const BYTES_PER_SECOND: f64 = (32 << 20) as f64;

/// The shortest wait that is worth its overhead.
const WAIT_MIN: Duration = Duration::from_millis(10);

/// A flag that ends the work of the sealer or the checker. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<(Mutex<bool>, Condvar)>);

impl StopFlag {
    /// Ends running work soon, because the daemon is stopping.
    pub fn set(&self) {
        let (has_ended, changed) = &*self.0;
        *has_ended.lock() = true;
        changed.notify_all();
    }

    /// Waits for a time or until the end; returns true to continue.
    pub(super) fn wait(&self, time: Duration) -> bool {
        let (has_ended, changed) = &*self.0;
        let mut has_ended = has_ended.lock();
        if time >= WAIT_MIN {
            changed.wait_while_for(&mut has_ended, |has_ended| !*has_ended, time);
        }
        !*has_ended
    }
}

/// The actor of this role. It blocks its thread while it writes, so it needs its own arbiter.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct Sealer {
    pub store: Store,
    pub clock: TrustedClock,
    pub health: Health,
    pub lifeline: Lifeline,
    pub stop_flag: StopFlag,
    /// The time since the end and the last change of a partition after which it is sealed.
    pub after: LiveValue<Duration>,
}

impl Sealer {
    fn run(&self) {
        let after_ms = i64::try_from(self.after.get().as_millis()).unwrap_or(i64::MAX);
        let (watch, written) = (Stopwatch::start(), AtomicU64::new(0));
        let keep_pace = |bytes| {
            let written = written.fetch_add(bytes, Ordering::Relaxed) + bytes;
            let due = written as f64 / BYTES_PER_SECOND;
            self.stop_flag.wait(Duration::from_secs_f64(due).saturating_sub(watch.elapsed()))
        };
        match self.store.seal(self.clock.moment(), after_ms, &keep_pace) {
            Ok(report) => {
                self.health.clear(Condition::Sealing);
                let SealReport { partitions, documents, bytes, refused, .. } = report;
                if partitions > 0 {
                    tracing::info!(partitions, documents, bytes, "sealed partitions");
                }
                if refused > 0 {
                    tracing::error!(
                        refused,
                        "partitions stay open: sealing would change some of their cells, which is \
                         a bug in granary: report it"
                    );
                }
            }
            Err(cause) => {
                self.health.raise_fault(Condition::Sealing, &cause);
                let cause: &dyn std::error::Error = &cause;
                tracing::warn!(cause, "sealing failed and will be retried");
            }
        }
    }
}

impl Sealer {
    fn run_later(&self, ctx: &mut Context<Self>) {
        let interval = (*self.after.get()).min(INTERVAL_MAX);
        ctx.run_later(interval, |role, ctx| {
            role.run();
            role.run_later(ctx);
        });
    }
}

impl Actor for Sealer {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.run_later(ctx);
    }
}

impl Handler<Stop> for Sealer {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.lifeline.release();
        ctx.stop();
    }
}
