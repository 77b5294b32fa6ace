//! The membership of a node in a shard: it follows the log, holds the shard, and loses it.
//!
//! Must never know: HTTP, what the holder does with the store.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use tokio::sync::watch;

use super::{
    ReplicaLog,
    metrics::NodeMetrics,
    shard::{SharedReplica, StoreShard},
};
use crate::{
    replication::{
        Event, Shard,
        runner::{ReplicaHandle, StatusReader},
    },
    store::{Appender, Store},
};

/// The time limit for the confirmation of the first record of a log.
const FOUNDED_WITHIN: Duration = Duration::from_secs(20);
/// The time limit for the end of all uses of a replica.
const UNUSED_WITHIN: Duration = Duration::from_secs(10);

/// The phase of a membership in a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// The node follows the log, if it is a member, and knows its holder.
    Follows,
    /// The node holds the shard in an epoch.
    Holds(u64),
    /// The node held the shard, and another node can hold it now.
    Lost,
    /// The replica cannot apply the log.
    Damaged(String),
}

/// The membership of this node in a shard, from the opening of its replica until it is closed.
#[derive(Debug)]
pub struct Membership {
    pub(super) metrics: NodeMetrics,
    pub(super) shard: u16,
    pub(super) running: Arc<ReplicaHandle<StoreShard>>,
    pub(super) store: SharedReplica,
    pub(super) status: StatusReader,
    pub(super) phase: watch::Receiver<Phase>,
    /// Ends a copy of another replica.
    pub(super) ends: Arc<AtomicBool>,
}

impl Membership {
    /// Returns the phase, and its changes.
    pub fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.clone()
    }

    /// Returns the status of the replica.
    pub fn status(&self) -> StatusReader {
        self.status.clone()
    }

    /// Makes this node, which holds the shard, the one that appends. `first` is the first record of a
    /// log that has none. It blocks.
    ///
    /// # Errors
    /// When the first record was not confirmed, or the replica does not follow.
    pub fn lead(&self, first: &[u8]) -> anyhow::Result<(Store, Appender)> {
        if self.store.is_new() {
            self.found(first.to_vec())?;
        }
        let log = Box::new(ReplicaLog::new(self.running.clone()));
        self.store.lead(log).context("the replica does not follow")
    }

    fn found(&self, first: Vec<u8>) -> anyhow::Result<()> {
        let append = move |_: &StoreShard| Some(first);
        let outcome = self.running.append(Box::new(append))?.recv_timeout(FOUNDED_WITHIN);
        Ok(outcome.context("MongoDB does not confirm the first record of the log")??)
    }

    /// Ends the lease in order, so that another member takes the shard at once. The phase shows
    /// when the lease is over.
    pub fn hand_over(&self) {
        if let Err(refusal) = self.running.hand_over() {
            tracing::debug!(%refusal, "the replica has stopped");
        }
    }

    /// Ends the thread of the replica, and closes it. It blocks. Returns false when the store is
    /// still in use.
    pub fn end(self) -> bool {
        self.ends.store(true, Ordering::Relaxed);
        self.metrics.show(self.shard, &self.status.get());
        let mut running = self.running;
        let watch = crate::clock::Stopwatch::start();
        let handle = loop {
            match Arc::try_unwrap(running) {
                Ok(handle) => break handle,
                Err(_) if watch.elapsed() > UNUSED_WITHIN => return false,
                Err(shared) => running = shared,
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        if handle.stop().is_none() {
            tracing::error!("the thread of the replica panicked");
        }
        let closed = self.store.close();
        closed.is_none_or(|closed| closed.wait(UNUSED_WITHIN))
    }
}

/// Notes an event of the replica; the thread of the replica ends when the lease is over, because
/// the store must be opened again before it can follow.
pub(super) fn note(
    shard: u16,
    event: &Event,
    store: &StoreShard,
    phase: &watch::Sender<Phase>,
) -> ControlFlow<()> {
    let holds = matches!(*phase.borrow(), Phase::Holds(_));
    match event {
        Event::Committed { .. } => {}
        Event::Took { epoch } => {
            tracing::info!(shard, epoch, "this node holds the store");
            phase.send_replace(Phase::Holds(*epoch));
        }
        Event::Fenced if holds => {
            tracing::warn!(
                shard,
                "another node holds the store; this one stops answering and follows"
            );
            phase.send_replace(Phase::Lost);
            return ControlFlow::Break(());
        }
        Event::Fenced => tracing::info!(shard, "another node took the store first"),
        Event::Stopped => {
            tracing::info!(shard, last_record = store.applied(), "handed the store over");
            phase.send_replace(Phase::Lost);
            return ControlFlow::Break(());
        }
        Event::Seeded => tracing::info!(shard, "copied the replica from another node"),
        Event::NotSeeded(fault) => {
            tracing::warn!(shard, %fault, "cannot copy the replica from another node; trying again");
        }
        Event::Foreign(fault) => {
            tracing::error!(
                shard,
                fault,
                "the log is not the one of this replica; nothing is applied"
            );
        }
        Event::Damaged(fault) => {
            tracing::error!(shard, fault, "the replica cannot apply the log");
            phase.send_replace(Phase::Damaged(fault.clone()));
        }
    }
    ControlFlow::Continue(())
}
