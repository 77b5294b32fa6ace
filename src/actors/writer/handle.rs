//! The handle of the writer: the sending side of its queue, which callers share.
//!
//! Must never know: how commands are grouped and committed.

use std::sync::{Arc, atomic::Ordering};

use crossbeam_channel::{Sender, TrySendError};
use tokio::sync::oneshot;

use super::{
    ChangeVerdict, Command, ErasureVerdict, Pressure, ReplaceVerdicts, Reply, SingleCommand,
    WriteFault,
};
use crate::{
    model::{AcceptedBatch, BatchVerdict, DefinitionVerdict, ProjectName, SeriesId, SeriesInfo},
    store::{ErasureRequest, NewReading, SeriesChange},
};

/// The sending side of the queue, for one project: the names of senders become stored names here.
/// Clones are cheap.
#[derive(Debug, Clone)]
pub struct WriterHandle {
    commands: Sender<Command>,
    pressure: Arc<Pressure>,
    project: ProjectName,
}

impl WriterHandle {
    pub(super) fn new(commands: Sender<Command>, pressure: Arc<Pressure>) -> Self {
        Self { commands, pressure, project: ProjectName::default() }
    }

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
        self.request(|reply| Command::Define { definitions, reply }).await
    }

    /// Changes the kinds of known series, see [`crate::store::Appender::change_kinds`]; the reply
    /// means that the changes are durable.
    ///
    /// # Errors
    /// The queue is full or the journal cannot be written; no kind was changed.
    pub async fn change_kinds(
        &self,
        definitions: Vec<SeriesInfo>,
    ) -> Result<Vec<Option<SeriesId>>, WriteFault> {
        let definitions = self.with_project(definitions);
        self.request(|reply| single(SingleCommand::ChangeKinds { definitions, reply })).await
    }

    /// Deletes or renames series; the reply means that the change is durable.
    ///
    /// # Errors
    /// The queue is full or the journal cannot be written; nothing was changed.
    pub async fn change(&self, change: SeriesChange) -> Result<ChangeVerdict, WriteFault> {
        let change = Box::new((self.project.clone(), change));
        self.request(|reply| single(SingleCommand::Change { change, reply })).await
    }

    /// Accepts an erasure, see [`crate::store::Appender::erase`]; the reply means that it is
    /// durable.
    ///
    /// # Errors
    /// The queue is full or a file cannot be written; in that case, the erasure may be stored
    /// nevertheless.
    pub async fn erase(
        &self,
        request: ErasureRequest,
        is_dry: bool,
    ) -> Result<ErasureVerdict, WriteFault> {
        let project = self.project.clone();
        let erase = |reply| SingleCommand::Erase { project, request, is_dry, reply };
        self.request(|reply| single(erase(reply))).await
    }

    /// Replaces readings, see [`crate::store::Appender::replace`]; the reply means that they are
    /// durable.
    ///
    /// # Errors
    /// The queue is full or a file cannot be written; a repetition has the same effect.
    pub async fn replace(&self, readings: Vec<NewReading>) -> Result<ReplaceVerdicts, WriteFault> {
        self.request(|reply| single(SingleCommand::Replace { readings, reply })).await
    }

    /// Removes senders; the reply contains their number and means that the removal is durable.
    ///
    /// # Errors
    /// The queue is full or the journal cannot be written; no sender was removed.
    pub async fn forget_senders(&self, senders: Vec<Arc<str>>) -> Result<usize, WriteFault> {
        let senders = senders.iter().map(|sender| self.project.stored_name(sender)).collect();
        self.request(|reply| single(SingleCommand::ForgetSenders { senders, reply })).await
    }

    /// Removes the series in an ascending list that have no samples left; the reply contains the
    /// number of removed series and means that the removal is durable.
    ///
    /// # Errors
    /// The queue is full or the journal cannot be written; no series was removed.
    pub async fn forget_series(&self, series: Vec<SeriesId>) -> Result<usize, WriteFault> {
        self.request(|reply| single(SingleCommand::ForgetSeries { series, reply })).await
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
        self.pressure.store.is_full(&self.pressure.bounds)
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

    /// Sends a command, and waits for its reply.
    async fn request<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, WriteFault> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply))?;
        answer.await.unwrap_or_else(|_| Err(writer_ended()))
    }

    fn send(&self, command: Command) -> Result<(), WriteFault> {
        self.commands.try_send(command).map_err(|fault| match fault {
            TrySendError::Full(_) => WriteFault::Busy("the writer's queue is full"),
            TrySendError::Disconnected(_) => writer_ended(),
        })
    }
}

/// Returns a command that is committed alone.
fn single(command: SingleCommand) -> Command {
    Command::SingleCommand(command)
}

fn writer_ended() -> WriteFault {
    WriteFault::Failed("the writer has ended".to_owned())
}
