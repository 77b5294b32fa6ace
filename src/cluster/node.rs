//! This node, and its membership in the cluster.
//!
//! Must never know: HTTP, what the holder does with the store.

use std::{
    ops::ControlFlow,
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{Semaphore, watch},
    task::JoinHandle,
};

use super::{
    ReplicaLog, SHARD,
    metrics::NodeMetrics,
    nodes::KnownNodes,
    remembered::replace_run,
    secret::KnownSecret,
    seed::Seeding,
    shard::{SharedReplica, StoreShard},
    upkeep::UpkeepSettings,
};
use crate::{
    publish::MongoUri,
    replication::{
        Event, Medium, NodeName, Replica, Shard, Timing,
        medium::MongoMedium,
        runner::{Connections, ReplicaHandle, Spreader, StatusReader, Writer, start},
    },
    store::{Appender, Store},
};

/// The time limit for the confirmation of the first record of a log.
const FOUNDED_WITHIN: Duration = Duration::from_secs(20);
/// The maximum number of copies that are sent at the same time; more nodes wait.
const COPIES_MAX: usize = 1;
/// The time limit for the end of all uses of a replica.
const UNUSED_WITHIN: Duration = Duration::from_secs(10);

/// The interval at which metrics follow the status.
const SHOWN_EVERY: Duration = Duration::from_secs(1);

/// The settings of a node.
#[derive(Debug, Clone)]
pub struct NodeParts {
    /// The name of the node.
    pub node: NodeName,
    /// The address at which other nodes reach this one.
    pub advertise: String,
    /// The number of members of the shard.
    pub replicas: usize,
    /// The data directory.
    pub folder: PathBuf,
}

/// The phase of a membership.
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
    /// Another process runs as this node.
    Refused(String),
}

/// This node.
#[derive(Debug, Clone)]
pub struct Node {
    parts: NodeParts,
    connections: Connections,
    nodes: KnownNodes,
    secret: KnownSecret,
    copies: Arc<Semaphore>,
    replica: SharedReplica,
    metrics: NodeMetrics,
    /// A random number of this process, and that of the last one with the same data directory.
    runs: (i64, Option<i64>),
    /// The digest of this node's rules.
    rules: Arc<Mutex<String>>,
}

impl Node {
    /// Creates the node. It connects to MongoDB when it joins.
    ///
    /// # Errors
    /// When the address of MongoDB or its certificates cannot be used.
    pub async fn open(
        parts: NodeParts,
        uri: &MongoUri,
        database: &str,
        runtime: Handle,
    ) -> anyhow::Result<Self> {
        let run = fastrand::i64(..);
        let runs = (run, replace_run(&parts.folder, run)?);
        let (uri, database) = (uri.clone(), database.to_owned());
        // The driver's tasks run where the client is created. They must not wait for a thread of HTTP
        // that waits for MongoDB itself.
        let opening = runtime.spawn(async move { MongoMedium::open(&uri, &database).await });
        let medium = opening.await.context("create the client of MongoDB")?;
        let medium = medium.context("cluster.uri")?;
        let secret = KnownSecret::default();
        runtime.spawn(secret.clone().learn(medium.clone()));
        let medium: Arc<dyn Medium> = Arc::new(medium);
        let writer = Writer::start(&runtime, medium.clone());
        let connections = Connections { runtime, medium, writer };
        let metrics = NodeMetrics::new().context("register metrics")?;
        let (nodes, replica) = (KnownNodes::default(), SharedReplica::default());
        let copies = Arc::new(Semaphore::new(COPIES_MAX));
        let rules = Arc::default();
        Ok(Self { parts, connections, nodes, secret, copies, replica, metrics, runs, rules })
    }

    /// Returns the settings.
    pub fn parts(&self) -> &NodeParts {
        &self.parts
    }

    /// Returns the addresses of all nodes.
    pub fn nodes(&self) -> &KnownNodes {
        &self.nodes
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> &NodeMetrics {
        &self.metrics
    }

    /// Returns the secret of the cluster.
    pub fn secret(&self) -> &KnownSecret {
        &self.secret
    }

    /// Returns the digest of this node's rules, which the caller sets.
    pub fn rules(&self) -> &Arc<Mutex<String>> {
        &self.rules
    }

    /// Returns the permits of copies that this node sends.
    pub(super) fn copies(&self) -> &Arc<Semaphore> {
        &self.copies
    }

    /// Returns the runtime of the connections to MongoDB.
    pub(super) fn runtime(&self) -> &Handle {
        &self.connections.runtime
    }

    /// Returns the replica.
    pub fn replica(&self) -> &SharedReplica {
        &self.replica
    }

    /// Opens the replica, and starts to follow the log. It blocks.
    ///
    /// # Errors
    /// When the files cannot be used, or a thread cannot be started.
    pub fn join(&self, upkeep: UpkeepSettings) -> anyhow::Result<Membership> {
        let NodeParts { node, folder, .. } = &self.parts;
        let ends = Arc::new(AtomicBool::new(false));
        let (folder, nodes) = (folder.clone(), self.nodes.clone());
        let (secret, node) = (self.secret.clone(), node.clone());
        let metrics = self.metrics.clone();
        let seeding = Seeding { node, folder, nodes, secret, metrics, ends: ends.clone() };
        let node = &self.parts.node;
        let shard = StoreShard::open(seeding, upkeep, self.replica.clone())?;
        let (changes, phase) = watch::channel(Phase::Follows);
        let changes = Arc::new(changes);
        let refused = Arc::downgrade(&changes);
        let role = Replica::new(SHARD, node.clone(), Timing::default(), fastrand::u64(..));
        let on_event = move |event: &Event, shard: &StoreShard| note(event, shard, &changes);
        let handle = start(role, shard, self.connections.clone(), on_event)
            .context("start the thread of the replica")?;
        let (status, replicas) = (handle.status_reader(), Arc::new(vec![handle]));
        let spreader = Spreader {
            node: node.clone(),
            address: self.parts.advertise.clone(),
            runs: self.runs,
            rules: self.rules.clone(),
            replicas_per_shard: self.parts.replicas,
            // One shard has nothing to balance, and each move interrupts its users.
            hands_over: false,
            replicas: replicas.clone(),
            nodes: self.nodes.0.clone(),
        };
        let spreading = spreader.run(self.connections.medium.clone());
        let (node, advertise) = (self.parts.node.clone(), self.parts.advertise.clone());
        let spreading = async move {
            let other = spreading.await;
            if let Some(changes) = refused.upgrade() {
                changes.send_replace(Phase::Refused(format!(
                    "another process runs as the node {node} (it advertises {other}, this one \
                     {advertise}): give each node its own cluster.advertise, and its own data \
                     directory"
                )));
            }
        };
        let tasks = [
            self.connections.runtime.spawn(spreading),
            self.connections.runtime.spawn(show(self.clone(), status.clone())),
        ];
        Ok(Membership { node: self.clone(), replicas, tasks, status, phase, ends })
    }
}

/// Shows the status of a membership at intervals.
async fn show(node: Node, status: StatusReader) {
    let Node { metrics, nodes, rules, .. } = node;
    metrics.begin();
    loop {
        metrics.show(&status.get());
        let differing = nodes.with_other_rules(&rules.lock());
        metrics.shown.rules_differ.set(differing.len() as i64);
        tokio::time::sleep(SHOWN_EVERY).await;
    }
}

/// Notes an event of the replica; the thread of the replica ends when the lease is over, because
/// the store must be opened again before it can follow.
fn note(event: &Event, shard: &StoreShard, phase: &watch::Sender<Phase>) -> ControlFlow<()> {
    let holds = matches!(*phase.borrow(), Phase::Holds(_));
    match event {
        Event::Committed { .. } => {}
        Event::Took { epoch } => {
            tracing::info!(epoch, "this node holds the store");
            phase.send_replace(Phase::Holds(*epoch));
        }
        Event::Fenced if holds => {
            tracing::warn!("another node holds the store; this one stops answering and follows");
            phase.send_replace(Phase::Lost);
            return ControlFlow::Break(());
        }
        Event::Fenced => tracing::info!("another node took the store first"),
        Event::Stopped => {
            tracing::info!(last_record = shard.applied(), "handed the store over");
            phase.send_replace(Phase::Lost);
            return ControlFlow::Break(());
        }
        Event::Seeded => tracing::info!("copied the replica from another node"),
        Event::NotSeeded(fault) => {
            tracing::warn!(%fault, "cannot copy the replica from another node; trying again");
        }
        Event::Foreign(fault) => {
            tracing::error!(fault, "the log is not the one of this replica; nothing is applied");
        }
        Event::Damaged(fault) => {
            tracing::error!(fault, "the replica cannot apply the log");
            phase.send_replace(Phase::Damaged(fault.clone()));
        }
    }
    ControlFlow::Continue(())
}

/// The membership of this node, from the opening of its replica until it is closed.
#[derive(Debug)]
pub struct Membership {
    node: Node,
    replicas: Arc<Vec<ReplicaHandle<StoreShard>>>,
    /// The spreader, and the task of the metrics.
    tasks: [JoinHandle<()>; 2],
    status: StatusReader,
    phase: watch::Receiver<Phase>,
    /// Ends a copy of another replica.
    ends: Arc<AtomicBool>,
}

impl Membership {
    /// Returns the phase, and its changes.
    pub fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.clone()
    }

    /// Returns the node.
    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the replicas of the shards, while the membership lasts.
    pub(super) fn replicas(&self) -> Weak<Vec<ReplicaHandle<StoreShard>>> {
        Arc::downgrade(&self.replicas)
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
        if self.node.replica.is_new() {
            self.found(first.to_vec())?;
        }
        let log = Box::new(ReplicaLog::new(self.replicas.clone()));
        self.node.replica.lead(log).context("the replica does not follow")
    }

    fn found(&self, first: Vec<u8>) -> anyhow::Result<()> {
        let replica = self.replicas.first().context("the node has no replica")?;
        let append = move |_: &StoreShard| Some(first);
        let outcome = replica.append(Box::new(append))?.recv_timeout(FOUNDED_WITHIN);
        Ok(outcome.context("MongoDB does not confirm the first record of the log")??)
    }

    /// Ends the lease in order, so that another member takes the shard at once. The phase shows
    /// when the lease is over.
    pub fn hand_over(&self) {
        for replica in &*self.replicas {
            if let Err(refusal) = replica.hand_over() {
                tracing::debug!(%refusal, "the replica has stopped");
            }
        }
    }

    /// Ends the threads of the membership, and closes the replica. It blocks. Returns false when the
    /// store is still in use.
    pub fn end(self) -> bool {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.ends.store(true, Ordering::Relaxed);
        self.node.metrics.show(&self.status.get());
        let mut replicas = self.replicas;
        let watch = crate::clock::Stopwatch::start();
        let handles = loop {
            match Arc::try_unwrap(replicas) {
                Ok(handles) => break handles,
                Err(_) if watch.elapsed() > UNUSED_WITHIN => return false,
                Err(shared) => replicas = shared,
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        for handle in handles {
            if handle.stop().is_none() {
                tracing::error!("the thread of the replica panicked");
            }
        }
        let closed = self.node.replica.close();
        closed.is_none_or(|closed| closed.wait(UNUSED_WITHIN))
    }
}
