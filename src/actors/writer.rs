//! The writer: one thread that owns the appender, behind a bounded channel.
//!
//! It drains what is waiting into a group, commits the group in one durable transaction and only
//! then answers: an acknowledged sample is on disk.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use actix::Recipient;
use crossbeam_channel::{Receiver, Sender, TrySendError};
use tokio::sync::oneshot;

use super::{CheckpointNow, Condition, Health, Lifeline};
use crate::{
    model::{Clock, time::Stopwatch},
    store::{
        AcceptedBatch, Appender, BatchVerdict, ChangeRefusal, CheckpointBounds, Definition,
        DefinitionVerdict, GroupVerdict, SeriesChange, Store, StoreError,
    },
    telemetry::Metrics,
};

/// Commands that may wait. Full: the request is refused with 429 and the sender keeps it.
const QUEUE_COMMANDS: usize = 1024;
/// A group is closed when its batches weigh this much, so that a commit stays short.
const GROUP_BYTES: usize = 4 << 20;
/// When requests come side by side, a group waits this long for those that the last
/// acknowledgements set free: fewer, larger commits. A lone sender never waits.
const GROUP_LINGER: Duration = Duration::from_millis(1);

/// Why nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteFault {
    /// The queue or the catalog is full; try again soon.
    #[error("{0}")]
    Busy(&'static str),
    /// The disk is full.
    #[error("the disk is full: {0}")]
    DiskFull(String),
    /// The journal could not be written.
    #[error("{0}")]
    Failed(String),
}

type Reply<T> = oneshot::Sender<Result<T, WriteFault>>;
/// How many series were changed, or why none was.
type ChangeVerdict = Result<usize, ChangeRefusal>;

enum Command {
    Define { definitions: Vec<Definition>, reply: Reply<Vec<DefinitionVerdict>> },
    Append { batches: Vec<AcceptedBatch>, reply: Reply<Vec<BatchVerdict>> },
    Change { change: SeriesChange, reply: Reply<ChangeVerdict> },
    Stop { reply: oneshot::Sender<()> },
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
}

/// What the writer is made of.
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
        definitions: Vec<Definition>,
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
        self.send(Command::Change { change, reply })?;
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
            return Err(WriteFault::Busy("checkpoints do not keep up; too much waits for one"));
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

    /// Whether batches are refused until a checkpoint makes room.
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

struct Role {
    parts: WriterParts,
    pressure: Arc<Pressure>,
    failing: bool,
}

/// Commands that are committed together.
#[derive(Default)]
struct Group {
    definitions: Vec<Definition>,
    define_replies: Vec<(usize, Reply<Vec<DefinitionVerdict>>)>,
    batches: Vec<AcceptedBatch>,
    append_replies: Vec<(usize, Reply<Vec<BatchVerdict>>)>,
    weight: usize,
    commands: usize,
    /// Done when the others are committed; it ends the group.
    change: Option<(SeriesChange, Reply<ChangeVerdict>)>,
    stop: Option<oneshot::Sender<()>>,
}

impl Group {
    fn add(&mut self, command: Command) {
        self.commands += 1;
        match command {
            Command::Define { definitions, reply } => {
                self.define_replies.push((definitions.len(), reply));
                self.definitions.extend(definitions);
            }
            Command::Append { batches, reply } => {
                self.weight += batches.iter().map(AcceptedBatch::weight).sum::<usize>();
                self.append_replies.push((batches.len(), reply));
                self.batches.extend(batches);
            }
            Command::Change { change, reply } => self.change = Some((change, reply)),
            Command::Stop { reply } => self.stop = Some(reply),
        }
    }

    fn is_open(&self) -> bool {
        self.weight < GROUP_BYTES && self.change.is_none() && self.stop.is_none()
    }

    fn has_writes(&self) -> bool {
        !(self.definitions.is_empty() && self.batches.is_empty())
    }

    fn answer(self, result: Result<GroupVerdict, WriteFault>) {
        match result {
            Ok(verdict) => {
                distribute(self.define_replies, verdict.definitions);
                distribute(self.append_replies, verdict.batches);
            }
            Err(fault) => {
                for (_, reply) in self.define_replies {
                    deliver(reply, Err(fault.clone()));
                }
                for (_, reply) in self.append_replies {
                    deliver(reply, Err(fault.clone()));
                }
            }
        }
    }
}

fn distribute<T>(replies: Vec<(usize, Reply<Vec<T>>)>, verdicts: Vec<T>) {
    let mut verdicts = verdicts.into_iter();
    for (count, reply) in replies {
        deliver(reply, Ok(verdicts.by_ref().take(count).collect()));
    }
}

fn deliver<T>(reply: Reply<T>, result: Result<T, WriteFault>) {
    // A client that hung up is not waited for; its batch is numbered and will come again.
    drop(reply.send(result));
}

impl Role {
    fn run(mut self, commands: &Receiver<Command>) {
        let mut last_group = 1;
        while let Ok(first) = commands.recv() {
            let mut group = Group::default();
            group.add(first);
            let watch = Stopwatch::start();
            while group.is_open() {
                let linger = GROUP_LINGER.saturating_sub(watch.elapsed());
                let next = if group.commands < last_group && !linger.is_zero() {
                    commands.recv_timeout(linger).ok()
                } else {
                    commands.try_recv().ok()
                };
                let Some(next) = next else { break };
                group.add(next);
            }
            last_group = group.commands;
            let change = group.change.take();
            let stop = group.stop.take();
            if group.has_writes() || change.is_none() {
                self.commit(group);
            }
            if let Some((change, reply)) = change {
                self.change(&change, reply);
            }
            if let Some(reply) = stop {
                self.parts.lifeline.release();
                if reply.send(()).is_err() {
                    tracing::debug!("nobody waits for the writer's end");
                }
                return;
            }
        }
        self.parts.lifeline.release();
    }

    fn commit(&mut self, group: Group) {
        let parts = &mut self.parts;
        let watch = Stopwatch::start();
        let now = parts.clock.now();
        let result = parts.appender.commit(&group.definitions, &group.batches, now);
        parts.metrics.commit_duration.observe(watch.seconds());
        let left = self.pressure.queued_bytes.fetch_sub(group.weight, Ordering::Relaxed);
        parts.metrics.writer_queue_bytes.set(left.saturating_sub(group.weight) as i64);
        let result = result.map_err(|cause| describe(&cause));
        self.note_health(result.as_ref().err());
        group.answer(result);
        self.ask_for_checkpoint();
    }

    fn change(&mut self, change: &SeriesChange, reply: Reply<ChangeVerdict>) {
        let watch = Stopwatch::start();
        let result = self.parts.appender.change(change).map_err(|cause| describe(&cause));
        if let Ok(Ok(series)) = &result {
            let elapsed_ms = watch.millis();
            tracing::info!(series, ?change, elapsed_ms, "changed series");
        }
        self.note_health(result.as_ref().err());
        deliver(reply, result);
    }

    fn note_health(&mut self, fault: Option<&WriteFault>) {
        match (fault, self.failing) {
            (Some(fault), false) => {
                tracing::error!(%fault, "cannot write the journal; batches are refused");
                self.parts.health.raise(Condition::Journal, fault.to_string());
            }
            (None, true) => {
                tracing::info!("the journal can be written again");
                self.parts.health.clear(Condition::Journal);
            }
            (Some(_), true) | (None, false) => {}
        }
        self.failing = fault.is_some();
    }

    /// Asks for a checkpoint when one of its bounds is reached.
    fn ask_for_checkpoint(&self) {
        let parts = &self.parts;
        if parts.store.needs_checkpoint(&parts.bounds)
            && parts.checkpointer.try_send(CheckpointNow).is_err()
        {
            tracing::trace!("a checkpoint is asked for already");
        }
    }
}

/// The error with its chain of causes.
fn describe(error: &StoreError) -> WriteFault {
    let text = error.chain();
    if error.is_disk_full() { WriteFault::DiskFull(text) } else { WriteFault::Failed(text) }
}
