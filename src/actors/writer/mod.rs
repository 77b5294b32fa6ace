//! The writer: one thread that owns the appender, behind a bounded channel.
//!
//! It drains what is waiting into a group, commits the group in one durable transaction and only
//! then answers: an acknowledged sample is on disk. Here is its outside, the handle and the
//! commands; `role.rs` is what the thread does.

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
    model::{AcceptedBatch, BatchVerdict, DefinitionVerdict, SeriesId, SeriesInfo},
    store::{Appender, ChangeRefusal, CheckpointBounds, SeriesChange, Store},
    telemetry::{Health, Metrics},
};
use role::Role;

/// Commands that may wait. Full: the request is refused as busy and the sender keeps it.
const QUEUE_COMMANDS: usize = 1024;

/// Why a batch is refused whose series had no samples left when it came.
const FORGOTTEN: &str = "series of the batch were forgotten while it came; send it again";
/// Why batches are refused until a checkpoint makes room.
const BACKLOG: &str = "checkpoints do not keep up; too much waits for one";

/// Why nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteFault {
    /// The queue or the catalog is full; try again soon.
    #[error("{0}")]
    Busy(&'static str),
    /// The disk is full.
    #[error("{0}")]
    DiskFull(String),
    /// The journal could not be written.
    #[error("{0}")]
    Failed(String),
}

type Reply<T> = oneshot::Sender<Result<T, WriteFault>>;
/// The number of changed series, or the reason why there are none.
type ChangeVerdict = Result<usize, ChangeRefusal>;

enum Command {
    Define { definitions: Vec<SeriesInfo>, reply: Reply<Vec<DefinitionVerdict>> },
    Append { batches: Vec<AcceptedBatch>, reply: Reply<Vec<BatchVerdict>> },
    Alone(Alone),
    Stop { reply: oneshot::Sender<()> },
}

/// A command that is committed alone.
enum Alone {
    Change { change: SeriesChange, reply: Reply<ChangeVerdict> },
    Forget { senders: Vec<Arc<str>>, reply: Reply<usize> },
    ForgetSeries { series: Vec<SeriesId>, reply: Reply<usize> },
}

/// The way to the writer. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WriterHandle {
    commands: Sender<Command>,
    pressure: Arc<Pressure>,
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
    /// Why a batch is refused for which there is no room before a checkpoint.
    fn backlog(&self) -> WriteFault {
        self.health.full_disk().map_or(WriteFault::Busy(BACKLOG), WriteFault::DiskFull)
    }
}

/// The parts of the writer.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types say it")]
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
    /// When the system has no thread left.
    pub fn start(parts: WriterParts) -> std::io::Result<(Self, WriterHandle)> {
        let (commands, receiver) = crossbeam_channel::bounded(QUEUE_COMMANDS);
        let pressure = Arc::new(Pressure {
            queued_bytes: AtomicUsize::new(0),
            queued_bytes_max: parts.queue_bytes_max,
            bounds: parts.bounds,
            store: parts.store.clone(),
            health: parts.health.clone(),
        });
        let handle = WriterHandle { commands, pressure: pressure.clone() };
        let role = Role { parts, pressure, failing: false };
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
    /// Makes series known; the answer comes when they are durable.
    ///
    /// # Errors
    /// When the queue is full or the journal cannot be written.
    pub async fn define(
        &self,
        definitions: Vec<SeriesInfo>,
    ) -> Result<Vec<DefinitionVerdict>, WriteFault> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Define { definitions, reply })?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Deletes or renames series; the answer comes when that is durable.
    ///
    /// # Errors
    /// When the queue is full or the journal cannot be written; nothing was changed then.
    pub async fn change(&self, change: SeriesChange) -> Result<ChangeVerdict, WriteFault> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Alone(Alone::Change { change, reply }))?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Forgets senders; the answer, how many there were, comes when that is durable.
    ///
    /// # Errors
    /// When the queue is full or the journal cannot be written; none was forgotten then.
    pub async fn forget(&self, senders: Vec<Arc<str>>) -> Result<usize, WriteFault> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Alone(Alone::Forget { senders, reply }))?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Forgets those of some series, ascending, of which no sample is left; the answer, how many there
    /// were, comes when that is durable.
    ///
    /// # Errors
    /// When the queue is full or the journal cannot be written; none was forgotten then.
    pub async fn forget_series(&self, series: Vec<SeriesId>) -> Result<usize, WriteFault> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Alone(Alone::ForgetSeries { series, reply }))?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Makes batches durable; the answer comes when they are.
    ///
    /// # Errors
    /// When the queue is full or the journal cannot be written; nothing was accepted then.
    pub async fn append(
        &self,
        batches: Vec<AcceptedBatch>,
    ) -> Result<Vec<BatchVerdict>, WriteFault> {
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
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Bytes of batches that wait.
    pub fn queued_bytes(&self) -> usize {
        self.pressure.queued_bytes.load(Ordering::Relaxed)
    }

    /// True while batches are refused until a checkpoint makes room.
    pub fn is_full(&self) -> bool {
        self.pressure.store.is_full(&self.pressure.bounds)
    }

    /// Ends the thread after all that was sent before; answered when all of that is durable.
    pub async fn stop(&self) {
        let (reply, answer) = oneshot::channel();
        let commands = self.commands.clone();
        // Waits for room in the queue, away from the async threads.
        let sent =
            tokio::task::spawn_blocking(move || commands.send(Command::Stop { reply })).await;
        if matches!(sent, Ok(Ok(()))) && answer.await.is_err() {
            tracing::error!("the writer ended before it was asked to");
        }
    }

    fn send(&self, command: Command) -> Result<(), WriteFault> {
        self.commands.try_send(command).map_err(|fault| match fault {
            TrySendError::Full(_) => WriteFault::Busy("the writer's queue is full"),
            TrySendError::Disconnected(_) => ended(),
        })
    }
}

fn ended() -> WriteFault {
    WriteFault::Failed("the writer has ended".to_owned())
}

#[cfg(test)]
mod tests;
