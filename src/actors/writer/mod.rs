//! The writer: one thread that owns the appender, behind a bounded channel.
//!
//! The writer gathers the waiting commands into a group, commits the group in one durable
//! transaction and only then replies: an acknowledged sample is on disk. This file contains the
//! commands and the parts; `handle.rs` sends commands, and `role.rs` is the thread.

mod group;
mod handle;
mod linger;
mod role;

use std::{
    sync::{Arc, atomic::AtomicUsize},
    thread::{self, JoinHandle},
};

use actix::Recipient;
use tokio::sync::oneshot;

use super::{CheckpointNow, Lifeline};
use crate::{
    clock::Clock,
    kept::LiveValue,
    model::{
        AcceptedBatch, BatchVerdict, DefinitionVerdict, MetricLimits, ProjectName, SeriesId,
        SeriesInfo,
    },
    store::{
        Appender, ChangeRefusal, CheckpointBounds, ErasureRefusal, ErasureReport, ErasureRequest,
        NewReading, ReplaceVerdict, SeriesChange, Store, StoreError, StoreLimits,
    },
    telemetry::{Health, Metrics},
};
pub use handle::WriterHandle;
use role::WriterThread;

/// The capacity of the queue. When the queue is full, the request is refused as busy, and the
/// sender keeps its samples.
const QUEUE_COMMANDS: usize = 1024;

/// The reason for refusing a batch whose series were removed while it waited.
const FORGOTTEN: &str = "series of the batch were removed while it waited; send it again";
/// The reason for refusing batches until a checkpoint frees memory.
const BACKLOG: &str = "checkpoints do not keep up with ingest";

/// The reason why nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteFault {
    /// The queue or the catalog is full; retry soon.
    #[error("{0}")]
    Busy(&'static str),
    /// The disk is full.
    #[error("{0}")]
    DiskFull(String),
    /// The shared log cannot be written at present: its outcome is unknown, or another node writes
    /// it.
    #[error("{0}")]
    NoLog(String),
    /// The journal could not be written.
    #[error("{0}")]
    Failed(String),
}

impl From<&StoreError> for WriteFault {
    /// Describes the error with its chain of causes.
    fn from(error: &StoreError) -> Self {
        let text = error.reason();
        if error.is_disk_full() {
            Self::DiskFull(text)
        } else if let StoreError::Log(_) = error {
            Self::NoLog(text)
        } else {
            Self::Failed(text)
        }
    }
}

type Reply<T> = oneshot::Sender<Result<T, WriteFault>>;
/// The number of changed series, or the reason for a refusal.
type ChangeVerdict = Result<usize, ChangeRefusal>;
type ErasureVerdict = Result<ErasureReport, ErasureRefusal>;
/// One verdict per reading; `None` while a checkpoint or a snapshot is under way.
type ReplaceVerdicts = Option<Vec<ReplaceVerdict>>;

enum Command {
    Define { definitions: Vec<SeriesInfo>, reply: Reply<Vec<DefinitionVerdict>> },
    Append { batches: Vec<AcceptedBatch>, reply: Reply<Vec<BatchVerdict>> },
    SingleCommand(SingleCommand),
    Stop { reply: oneshot::Sender<()> },
}

/// A command that is committed alone.
enum SingleCommand {
    Change {
        change: Box<(ProjectName, SeriesChange)>,
        reply: Reply<ChangeVerdict>,
    },
    ChangeKinds {
        definitions: Vec<SeriesInfo>,
        reply: Reply<Vec<Option<SeriesId>>>,
    },
    Erase {
        project: ProjectName,
        request: ErasureRequest,
        is_dry: bool,
        reply: Reply<ErasureVerdict>,
    },
    Replace {
        readings: Vec<NewReading>,
        reply: Reply<ReplaceVerdicts>,
    },
    ForgetSenders {
        senders: Vec<Arc<str>>,
        reply: Reply<usize>,
    },
    ForgetSeries {
        series: Vec<SeriesId>,
        reply: Reply<usize>,
    },
}

#[derive(Debug)]
struct Pressure {
    queued_bytes: AtomicUsize,
    queued_bytes_max: usize,
    bounds: CheckpointBounds,
    store: Store,
    health: Health,
}

impl Pressure {
    /// Returns the reason for refusing batches before the next checkpoint.
    fn backlog(&self) -> WriteFault {
        self.health.full_disk().map_or(WriteFault::Busy(BACKLOG), WriteFault::DiskFull)
    }
}

/// The parts of the writer.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct WriterParts {
    pub store: Store,
    pub appender: Appender,
    pub clock: Arc<dyn Clock>,
    pub metrics: Metrics,
    pub health: Health,
    pub lifeline: Lifeline,
    pub checkpointer: Recipient<CheckpointNow>,
    pub queue_bytes_max: usize,
    pub bounds: CheckpointBounds,
    pub limits: LiveValue<StoreLimits>,
    pub metric_limits: LiveValue<MetricLimits>,
}

/// The running thread.
#[derive(Debug)]
pub struct Writer {
    thread: JoinHandle<()>,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system refuses the thread.
    pub fn start(parts: WriterParts) -> std::io::Result<(Self, WriterHandle)> {
        let (commands, receiver) = crossbeam_channel::bounded(QUEUE_COMMANDS);
        let pressure = Arc::new(Pressure {
            queued_bytes: AtomicUsize::new(0),
            queued_bytes_max: parts.queue_bytes_max,
            bounds: parts.bounds,
            store: parts.store.clone(),
            health: parts.health.clone(),
        });
        let handle = WriterHandle::new(commands, pressure.clone());
        let role = WriterThread { parts, pressure, outage: None };
        let thread =
            thread::Builder::new().name("writer".into()).spawn(move || role.run(&receiver))?;
        Ok((Self { thread }, handle))
    }

    /// Waits for the thread to end.
    pub fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("the writer thread panicked");
        }
    }
}

#[cfg(test)]
mod tests;
