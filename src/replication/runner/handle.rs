//! The handle of a replica's thread.

use std::{sync::Arc, thread::JoinHandle};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use parking_lot::Mutex;

use crate::replication::{
    entry::{NodeName, ShardRow},
    roles::{Counters, Refusal},
};

/// The state of a replica, for metrics and status.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// The epoch that this node holds.
    pub epoch: Option<u64>,
    /// The number of the last entry that was applied.
    pub applied: u64,
    /// The number up to which the disk has all entries.
    pub durable: u64,
    /// The uptime of the machine until which queries can be answered, in milliseconds. A reader
    /// compares it with the present one, as the thread may be blocked.
    pub answers_until_ms: Option<u64>,
    /// The counts for metrics.
    pub counters: Counters,
    /// The uptime of the machine at which a follower last read the end of the log, in milliseconds.
    pub caught_up_ms: Option<u64>,
    /// The shard's row as a follower read it last.
    pub row: Option<ShardRow>,
    /// The reason why the log in the database is not the one of this replica.
    pub foreign: Option<String>,
    /// The last reason why an outcome was unknown.
    pub last_fault: Option<String>,
}

/// A reader of the last status of a replica's thread. Clones are cheap.
#[derive(Debug, Clone)]
pub struct StatusReader(Arc<Mutex<Status>>);

impl StatusReader {
    /// Returns the state of the replica.
    pub fn get(&self) -> Status {
        self.0.lock().clone()
    }

    /// Returns true while queries can be answered: no other node can have confirmed a record.
    pub fn may_answer(&self, now_ms: u64) -> bool {
        self.0.lock().answers_until_ms.is_some_and(|until_ms| now_ms < until_ms)
    }
}

/// The way in which a replica's thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The node holds no lease, so the next holder need not wait.
    InOrder,
    /// The end of the lease could not be stored; the next holder waits for a TTL.
    WithLease,
}

/// The function that makes a record from the present state; `None` if there is nothing to append.
pub type Append<S> = Box<dyn FnOnce(&S) -> Option<Vec<u8>> + Send>;

/// The function that gets the state, and true if its answer is up to date.
pub type Query<S> = Box<dyn FnOnce(&S, bool) + Send>;

/// A record that waits for its turn, and its sender.
pub(super) struct Waiting<S> {
    append: Option<Append<S>>,
    reply: Sender<Result<(), Refusal>>,
}

impl<S> Waiting<S> {
    pub(super) fn build(&mut self, state: &S) -> Option<Vec<u8>> {
        self.append.take().and_then(|append| append(state))
    }

    pub(super) fn answer(self, outcome: Result<(), Refusal>) {
        // A sender that no longer waits gets no answer.
        self.reply.send(outcome).ok();
    }
}

/// A request to a replica's thread.
pub(super) enum Request<S> {
    Append(Waiting<S>),
    Query(Query<S>),
    Assign { rank: Option<u32>, joins: bool },
    OtherProcess,
    HandOver,
    Strike(NodeName),
    Stop,
}

/// The handle of a replica's thread.
pub struct ReplicaHandle<S> {
    requests: Sender<Request<S>>,
    status: Arc<Mutex<Status>>,
    thread: JoinHandle<Stopped>,
}

impl<S> std::fmt::Debug for ReplicaHandle<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReplicaHandle")
    }
}

impl<S> ReplicaHandle<S> {
    pub(super) fn new(
        requests: Sender<Request<S>>,
        status: Arc<Mutex<Status>>,
        thread: JoinHandle<Stopped>,
    ) -> Self {
        Self { requests, status, thread }
    }

    /// Appends a record. The receiver gets the outcome: a refused record may still be in the log,
    /// so its sender sends it again, and `append` recognizes what was applied.
    ///
    /// # Errors
    /// Too many requests wait, or the thread has ended.
    pub fn append(&self, append: Append<S>) -> Result<Receiver<Result<(), Refusal>>, Refusal> {
        let (reply, outcome) = bounded(1);
        self.request(Request::Append(Waiting { append: Some(append), reply }))?;
        Ok(outcome)
    }

    /// Calls a function with the state, and with true if its answer is up to date.
    ///
    /// # Errors
    /// Too many requests wait, or the thread has ended.
    pub fn query(&self, query: Query<S>) -> Result<(), Refusal> {
        self.request(Request::Query(query))
    }

    /// Sets the number of members that are preferred as holders, and whether the node becomes a
    /// member.
    ///
    /// # Errors
    /// Too many requests wait, or the thread has ended.
    pub fn assign(&self, rank: Option<u32>, joins: bool) -> Result<(), Refusal> {
        self.request(Request::Assign { rank, joins })
    }

    /// Notes that another process used this node's name, whose lease may still be valid.
    ///
    /// # Errors
    /// Too many requests wait, or the thread has ended.
    pub fn note_other_process(&self) -> Result<(), Refusal> {
        self.request(Request::OtherProcess)
    }

    /// Ends the lease in order.
    ///
    /// # Errors
    /// Too many requests wait, or the thread has ended.
    pub fn hand_over(&self) -> Result<(), Refusal> {
        self.request(Request::HandOver)
    }

    /// Removes a member from the shard that this node holds.
    ///
    /// # Errors
    /// Too many requests wait, or the thread has ended.
    pub fn strike(&self, node: NodeName) -> Result<(), Refusal> {
        self.request(Request::Strike(node))
    }

    /// Returns a reader of the replica's status, which can outlive the thread.
    pub fn status_reader(&self) -> StatusReader {
        StatusReader(self.status.clone())
    }

    /// Returns the state of the replica.
    pub fn status(&self) -> Status {
        self.status.lock().clone()
    }

    /// Ends the lease cleanly, and the thread; `None` if the thread panicked.
    pub fn stop(self) -> Option<Stopped> {
        // A thread that ended has no receiver.
        drop(self.requests.send(Request::Stop));
        self.thread.join().ok()
    }

    fn request(&self, request: Request<S>) -> Result<(), Refusal> {
        self.requests.try_send(request).map_err(|fault| match fault {
            TrySendError::Full(_) => Refusal::Busy,
            // The thread has ended.
            TrySendError::Disconnected(_) => Refusal::NoHolder,
        })
    }
}
