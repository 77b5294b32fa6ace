//! The writer: one thread that owns the appender, behind a bounded channel.
//!
//! The writer gathers the waiting commands into a group, commits the group in one durable
//! transaction and only then replies: an acknowledged sample is on disk. This file contains the
//! handle and the commands; `role.rs` is the thread.

mod group;
mod linger;
mod role;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

use actix::Recipient;
use crossbeam_channel::{Sender, TrySendError};
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
    /// The journal could not be written.
    #[error("{0}")]
    Failed(String),
}

impl From<&StoreError> for WriteFault {
    /// Describes the error with its chain of causes.
    fn from(error: &StoreError) -> Self {
        let text = error.reason();
        if error.is_disk_full() { Self::DiskFull(text) } else { Self::Failed(text) }
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

/// The sending side of the queue, for one project: the names of senders become stored names here.
/// Clones are cheap.
#[derive(Debug, Clone)]
pub struct WriterHandle {
    commands: Sender<Command>,
    pressure: Arc<Pressure>,
    project: ProjectName,
}

#[derive(Debug)]
struct Pressure {
    queued_bytes: AtomicUsize,
    queued_bytes_max: usize,
    bounds: LiveValue<CheckpointBounds>,
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
    pub bounds: LiveValue<CheckpointBounds>,
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
            bounds: parts.bounds.clone(),
            store: parts.store.clone(),
            health: parts.health.clone(),
        });
        let (pressure_of_role, project) = (pressure.clone(), ProjectName::default());
        let handle = WriterHandle { commands, pressure, project };
        let role = WriterThread { parts, pressure: pressure_of_role, outage: None };
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

impl WriterHandle {
    /// Returns the handle for the senders of a project.
    pub fn for_project(&self, project: &ProjectName) -> Self {
        Self { project: project.clone(), ..self.clone() }
    }

    /// Sets the stored names of the senders of definitions.
    fn with_project(&self, mut definitions: Vec<SeriesInfo>) -> Vec<SeriesInfo> {
        if !self.project.is_default() {
            for info in &mut definitions {
                info.sender = self.project.stored_name(&info.sender);
            }
        }
        definitions
    }

    /// Registers series; the reply means that they are durable.
    ///
    /// # Errors
    /// The queue is full or the journal cannot be written.
    pub async fn define(
        &self,
        definitions: Vec<SeriesInfo>,
    ) -> Result<Vec<DefinitionVerdict>, WriteFault> {
        let definitions = self.with_project(definitions);
        let (reply, answer) = oneshot::channel();
        self.send(Command::Define { definitions, reply })?;
        answer.await.unwrap_or_else(|_| Err(writer_ended()))
    }

    /// Changes the kinds of known series, see [`Appender::change_kinds`]; the reply means that the
    /// changes are durable.
    ///
    /// # Errors
    /// The queue is full or the journal cannot be written; no kind was changed.
    pub async fn change_kinds(
        &self,
        definitions: Vec<SeriesInfo>,
    ) -> Result<Vec<Option<SeriesId>>, WriteFault> {
        let definitions = self.with_project(definitions);
        let (reply, answer) = oneshot::channel();
        self.send(Command::SingleCommand(SingleCommand::ChangeKinds { definitions, reply }))?;
        answer.await.unwrap_or_else(|_| Err(writer_ended()))
    }

    /// Deletes or renames series; the reply means that the change is durable.
    ///
    /// # Errors
    /// The queue is full or the journal cannot be written; nothing was changed.
    pub async fn change(&self, change: SeriesChange) -> Result<ChangeVerdict, WriteFault> {
        let change = Box::new((self.project.clone(), change));
        let (reply, answer) = oneshot::channel();
        self.send(Command::SingleCommand(SingleCommand::Change { change, reply }))?;
        answer.await.unwrap_or_else(|_| Err(writer_ended()))
    }

    /// Accepts an erasure, see [`Appender::erase`]; the reply means that it is durable.
    ///
    /// # Errors
    /// The queue is full or a file cannot be written; the erasure is stored or not.
    pub async fn erase(
        &self,
        request: ErasureRequest,
        is_dry: bool,
    ) -> Result<ErasureVerdict, WriteFault> {
        let project = self.project.clone();
        let (reply, answer) = oneshot::channel();
        let erase = SingleCommand::Erase { project, request, is_dry, reply };
        self.send(Command::SingleCommand(erase))?;
        answer.await.unwrap_or_else(|_| Err(writer_ended()))
    }

    /// Replaces readings, see [`Appender::replace`]; the reply means that they are durable.
    ///
    /// # Errors
    /// The queue is full or a file cannot be written; a repetition has the same effect.
    pub async fn replace(&self, readings: Vec<NewReading>) -> Result<ReplaceVerdicts, WriteFault> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::SingleCommand(SingleCommand::Replace { readings, reply }))?;
        answer.await.unwrap_or_else(|_| Err(writer_ended()))
    }

    /// Removes senders; the reply contains their number and means that the removal is durable.
    ///
    /// # Errors
    /// The queue is full or the journal cannot be written; no sender was removed.
    pub async fn forget_senders(&self, senders: Vec<Arc<str>>) -> Result<usize, WriteFault> {
        let senders = senders.iter().map(|sender| self.project.stored_name(sender)).collect();
        let (reply, answer) = oneshot::channel();
        self.send(Command::SingleCommand(SingleCommand::ForgetSenders { senders, reply }))?;
        answer.await.unwrap_or_else(|_| Err(writer_ended()))
    }

    /// Removes the series in an ascending list that have no samples left; the reply contains the
    /// number of removed series and means that the removal is durable.
    ///
    /// # Errors
    /// The queue is full or the journal cannot be written; no series was removed.
    pub async fn forget_series(&self, series: Vec<SeriesId>) -> Result<usize, WriteFault> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::SingleCommand(SingleCommand::ForgetSeries { series, reply }))?;
        answer.await.unwrap_or_else(|_| Err(writer_ended()))
    }

    /// Makes batches durable; the reply contains their verdicts.
    ///
    /// # Errors
    /// The queue is full or the journal cannot be written; nothing was accepted.
    pub async fn append(
        &self,
        mut batches: Vec<AcceptedBatch>,
    ) -> Result<Vec<BatchVerdict>, WriteFault> {
        if !self.project.is_default() {
            for batch in &mut batches {
                batch.set_project(&self.project);
            }
        }
        let weight: usize = batches.iter().map(AcceptedBatch::weight).sum();
        let pressure = &self.pressure;
        if self.is_full() {
            return Err(pressure.backlog());
        }
        if pressure.queued_bytes.fetch_add(weight, Ordering::Relaxed) > pressure.queued_bytes_max {
            pressure.queued_bytes.fetch_sub(weight, Ordering::Relaxed);
            return Err(WriteFault::Busy("the writer's queue is full"));
        }
        let (reply, answer) = oneshot::channel();
        let sent = self.send(Command::Append { batches, reply });
        if sent.is_err() {
            pressure.queued_bytes.fetch_sub(weight, Ordering::Relaxed);
        }
        sent?;
        answer.await.unwrap_or_else(|_| Err(writer_ended()))
    }

    /// Returns the size of queued batches in bytes.
    pub fn queued_bytes(&self) -> usize {
        self.pressure.queued_bytes.load(Ordering::Relaxed)
    }

    /// Returns true while batches are refused until a checkpoint.
    pub fn is_full(&self) -> bool {
        self.pressure.store.is_full(&self.pressure.bounds.get())
    }

    /// Ends the thread after all earlier commands; replies when they are durable.
    pub async fn stop(&self) {
        let (reply, answer) = oneshot::channel();
        let commands = self.commands.clone();
        // A blocking send waits for room in the queue, outside of the async threads.
        let sent =
            tokio::task::spawn_blocking(move || commands.send(Command::Stop { reply })).await;
        if matches!(sent, Ok(Ok(()))) && answer.await.is_err() {
            tracing::error!("the writer ended before it was asked to");
        }
    }

    fn send(&self, command: Command) -> Result<(), WriteFault> {
        self.commands.try_send(command).map_err(|fault| match fault {
            TrySendError::Full(_) => WriteFault::Busy("the writer's queue is full"),
            TrySendError::Disconnected(_) => writer_ended(),
        })
    }
}

fn writer_ended() -> WriteFault {
    WriteFault::Failed("the writer has ended".to_owned())
}

#[cfg(test)]
mod tests;
