//! The local work of a replica that follows: checkpoints, sealing, and the end of expired
//! partitions. It appends nothing to the log.
//!
//! Must never know: the log.

use std::{
    cell::Cell,
    convert::Infallible,
    io,
    thread::{self, JoinHandle},
    time::Duration,
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use crate::{
    actors::drop_expired,
    clock::{Clock, Stopwatch, SystemClock},
    store::{CheckpointBounds, Store, StoreError},
};

/// The interval at which the thread checks whether work is due.
const TICK: Duration = Duration::from_secs(1);
/// The interval between searches for partitions that can be sealed or are expired.
const PARTITIONS_INTERVAL: Duration = Duration::from_secs(60);
/// The maximum rate of sealing in bytes per second.
const SEALED_BYTES_PER_SECOND: f64 = (32 << 20) as f64;

/// The settings of the local work.
#[derive(Debug, Clone, Copy)]
pub struct UpkeepSettings {
    /// The interval between checkpoints.
    pub checkpoint_interval: Duration,
    /// The sizes at which a checkpoint begins earlier.
    pub bounds: CheckpointBounds,
}

/// The thread of the local work, which ends after its present work when this value is dropped.
#[derive(Debug)]
pub struct Upkeep {
    running: Sender<Infallible>,
    thread: JoinHandle<()>,
}

impl Upkeep {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(store: Store, settings: UpkeepSettings) -> io::Result<Self> {
        let (running, ended) = bounded(0);
        let work = move || Work::new(store, settings, ended).run();
        let thread = thread::Builder::new().name("upkeep".to_owned()).spawn(work)?;
        Ok(Self { running, thread })
    }

    /// Ends the thread, and waits for its end.
    pub fn end(self) {
        drop(self.running);
        if self.thread.join().is_err() {
            tracing::error!("the thread of a replica's local work panicked");
        }
    }
}

struct Work {
    store: Store,
    settings: UpkeepSettings,
    ended: Receiver<Infallible>,
    since_checkpoint: Stopwatch,
    since_partitions: Stopwatch,
    /// True while the last work failed, so that the fault is logged once.
    has_failed: bool,
}

impl Work {
    fn new(store: Store, settings: UpkeepSettings, ended: Receiver<Infallible>) -> Self {
        let (since_checkpoint, since_partitions) = (Stopwatch::start(), Stopwatch::start());
        Self { store, settings, ended, since_checkpoint, since_partitions, has_failed: false }
    }

    fn run(mut self) {
        while self.waits(TICK) {
            let result = self.turn();
            match result {
                Ok(()) => self.has_failed = false,
                Err(cause) if !self.has_failed => {
                    self.has_failed = true;
                    let cause: &dyn std::error::Error = &cause;
                    tracing::warn!(cause, "the replica's files cannot be written; retrying");
                }
                Err(_) => {}
            }
        }
    }

    /// Waits; returns false at the end of the work.
    fn waits(&self, time: Duration) -> bool {
        self.ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
    }

    fn turn(&mut self) -> Result<(), StoreError> {
        let is_due = self.since_checkpoint.elapsed() >= self.settings.checkpoint_interval;
        if is_due || self.store.needs_checkpoint(&self.settings.bounds) {
            self.since_checkpoint = Stopwatch::start();
            self.store.checkpoint(SystemClock.moment())?;
        }
        if self.since_partitions.elapsed() >= PARTITIONS_INTERVAL {
            self.since_partitions = Stopwatch::start();
            drop_expired(&self.store, SystemClock.moment());
            self.seal()?;
        }
        Ok(())
    }

    fn seal(&self) -> Result<(), StoreError> {
        let after_ms = i64::try_from(self.settings.checkpoint_interval.as_millis());
        let (watch, written) = (Stopwatch::start(), Cell::new(0.0));
        let keep_pace = |bytes: u64| {
            written.set(written.get() + bytes as f64);
            let due = Duration::from_secs_f64(written.get() / SEALED_BYTES_PER_SECOND);
            self.waits(due.saturating_sub(watch.elapsed()))
        };
        self.store.seal(SystemClock.moment(), after_ms.unwrap_or(i64::MAX), &keep_pace)?;
        Ok(())
    }
}
