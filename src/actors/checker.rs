//! The checker: reads all files slowly, again and again, so that damage is found before the data is
//! needed.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{Lifeline, Stop, StopFlag};
use crate::{
    clock::{Stopwatch, TrustedClock},
    policy::CheckPass,
    store::{CheckedFile, Store},
};

/// The longest interval between two searches for a due file.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// The maximum rate of reads, because queries and checkpoints use the same disk.
const BYTES_PER_SECOND: f64 = (4 << 20) as f64;

/// The actor of this role. It blocks its thread while it reads, so it needs its own arbiter.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct Checker {
    pub store: Store,
    pub clock: TrustedClock,
    pub lifeline: Lifeline,
    pub stop_flag: StopFlag,
    /// The duration of a pass over all files.
    pub pass_duration: Duration,
    /// The current pass, and the time since its start.
    pub pass: Option<(CheckPass<CheckedFile>, Stopwatch)>,
}

impl Checker {
    /// Checks all files that are due.
    fn run(&mut self) {
        let is_over = |(pass, watch): &(CheckPass<_>, Stopwatch)| pass.is_over(watch.elapsed());
        if self.pass.as_ref().is_none_or(is_over) {
            let (files, now) = (self.store.checked_files(), self.clock.now());
            let pass = CheckPass::begin(files, self.pass_duration, now);
            self.pass = Some((pass, Stopwatch::start()));
        }
        let Some((pass, watch)) = &mut self.pass else { return };
        while let Some(file) = pass.next_due(watch.elapsed()) {
            let (began, read) = (Stopwatch::start(), AtomicU64::new(0));
            let keep_pace = |bytes| {
                let read = read.fetch_add(bytes, Ordering::Relaxed) + bytes;
                let due = Duration::from_secs_f64(read as f64 / BYTES_PER_SECOND);
                self.stop_flag.wait(due.saturating_sub(began.elapsed()))
            };
            if let Err(cause) = self.store.check_file(file, &keep_pace) {
                let cause: &dyn std::error::Error = &cause;
                tracing::warn!(cause, "a file was not checked; the next pass checks it");
            }
            if pass.is_done() {
                self.store.counters().checker_passes.add(1);
                let (bytes, faults) = {
                    let counters = self.store.counters();
                    (counters.checked_bytes.get(), counters.checker_faults.get())
                };
                tracing::info!(bytes, faults, "the checker has read all files");
            }
            if !self.stop_flag.wait(Duration::ZERO) {
                return;
            }
        }
    }
}

impl Actor for Checker {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(INTERVAL_MAX.min(self.pass_duration / 60), |role, _| role.run());
    }
}

impl Handler<Stop> for Checker {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.lifeline.release();
        ctx.stop();
    }
}
