//! This node, and its membership in each shard of the cluster.
//!
//! Must never know: HTTP, what the holder does with the store.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{Semaphore, watch},
};

use super::{
    ReplicaLog,
    metrics::NodeMetrics,
    nodes::KnownNodes,
    remembered::replace_run,
    secret::KnownSecret,
    seed::Seeding,
    shard::{SharedReplica, StoreShard},
    shards::{self, FIRST, KnownShards, WantedShards},
    upkeep::UpkeepSettings,
};
use crate::{
    publish::MongoUri,
    replication::{
        Event, Medium, NodeName, Replica, Shard, Timing,
        medium::MongoMedium,
        runner::{Connections, ReplicaHandle, Replicas, Spreader, StatusReader, Writer, start},
    },
    store::{Appender, Store},
    telemetry::ShardHealth,
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
    /// The number of shards of a new database.
    pub shards: u16,
    /// The number of members of a shard.
    pub replicas: usize,
    /// The data directory.
    pub folder: PathBuf,
}

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

/// This node.
#[derive(Debug, Clone)]
pub struct Node {
    parts: NodeParts,
    connections: Connections,
    nodes: KnownNodes,
    secret: KnownSecret,
    shards: KnownShards,
    copies: Arc<Semaphore>,
    /// The replicas as their threads use them.
    running: Replicas<StoreShard>,
    stores: Arc<Mutex<BTreeMap<u16, SharedReplica>>>,
    metrics: NodeMetrics,
    health: ShardHealth,
    /// The digest of this node's rules.
    rules: Arc<Mutex<String>>,
    /// True if the store in the data directory begins a new log.
    begins_log: bool,
    /// The reason why this process must not run as the node.
    refusal: watch::Receiver<Option<String>>,
}

impl Node {
    /// Creates the node, which begins to beat when MongoDB answers.
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
        let begins_log = shards::begins_log(&parts.folder)?;
        let (uri, database) = (uri.clone(), database.to_owned());
        // The driver's tasks run where the client is created. They must not wait for a thread of HTTP
        // that waits for MongoDB itself.
        let opening = runtime.spawn(async move { MongoMedium::open(&uri, &database).await });
        let medium = opening.await.context("create the client of MongoDB")?;
        let medium = medium.context("cluster.uri")?;
        let secret = KnownSecret::default();
        runtime.spawn(secret.clone().learn(medium.clone()));
        let (known, shards) = KnownShards::unknown();
        let (nodes, running) = (KnownNodes::default(), Replicas::default());
        let metrics = NodeMetrics::new().context("register metrics")?;
        let rules: Arc<Mutex<String>> = Arc::default();
        let spreader = Spreader {
            node: parts.node.clone(),
            address: parts.advertise.clone(),
            runs,
            rules: rules.clone(),
            replicas_per_shard: parts.replicas,
            hands_over: false,
            replicas: running.clone(),
            nodes: nodes.0.clone(),
        };
        let (refuse, refusal) = watch::channel(None);
        let wanted = WantedShards { configured: parts.shards, begins_log };
        runtime.spawn(spread(spreader, medium.clone(), (wanted, known), refuse));
        let of_nodes = (nodes.clone(), rules.clone());
        runtime.spawn(show(metrics.clone(), running.clone(), of_nodes));
        let medium: Arc<dyn Medium> = Arc::new(medium);
        let writer = Writer::start(&runtime, medium.clone());
        let connections = Connections { runtime, medium, writer };
        let copies = Arc::new(Semaphore::new(COPIES_MAX));
        let stores = Arc::default();
        Ok(Self {
            parts,
            connections,
            nodes,
            secret,
            shards,
            copies,
            running,
            stores,
            metrics,
            health: ShardHealth::default(),
            rules,
            begins_log,
            refusal,
        })
    }

    /// Waits until this node may follow the log of the first shard.
    pub async fn admitted(&self) {
        // A store that begins a log must not begin that of a cluster with several shards.
        if self.begins_log {
            self.shards.known().await;
        }
    }

    /// Waits until this process must not run as the node; returns the reason and what to do.
    pub async fn refused(&self) -> String {
        match self.refusal.clone().wait_for(Option::is_some).await.map(|reason| reason.clone()) {
            Ok(Some(reason)) => reason,
            Ok(None) | Err(_) => std::future::pending().await,
        }
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

    /// Returns the problems of the shards after the first one.
    pub fn health(&self) -> &ShardHealth {
        &self.health
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

    /// Returns the number of shards.
    pub fn shards(&self) -> &KnownShards {
        &self.shards
    }

    /// Returns the replicas that run.
    pub(super) fn running(&self) -> &Replicas<StoreShard> {
        &self.running
    }

    /// Returns the replica of a shard.
    pub fn replica(&self, shard: u16) -> SharedReplica {
        self.stores.lock().entry(shard).or_default().clone()
    }

    /// Returns the folder of a shard.
    pub fn folder(&self, shard: u16) -> PathBuf {
        let data_dir = &self.parts.folder;
        match shard {
            FIRST => data_dir.clone(),
            _ => shards::folder(data_dir).join(shard.to_string()),
        }
    }

    /// Opens the replica of a shard, and starts to follow its log. It blocks.
    ///
    /// # Errors
    /// When the files cannot be used, or a thread cannot be started.
    pub fn join(&self, shard: u16, upkeep: UpkeepSettings) -> anyhow::Result<Membership> {
        let node = self.parts.node.clone();
        let ends = Arc::new(AtomicBool::new(false));
        let seeding = Seeding {
            node: node.clone(),
            shard,
            folder: self.folder(shard),
            nodes: self.nodes.clone(),
            secret: self.secret.clone(),
            metrics: self.metrics.clone(),
            ends: ends.clone(),
        };
        let store = self.replica(shard);
        let state = StoreShard::open(seeding, upkeep, store.clone())?;
        let (changes, phase) = watch::channel(Phase::Follows);
        let role = Replica::new(shard, node, Timing::default(), fastrand::u64(..));
        let on_event = move |event: &Event, store: &StoreShard| note(shard, event, store, &changes);
        let handle = start(role, state, self.connections.clone(), on_event)
            .context("start the thread of the replica")?;
        let (status, running) = (handle.status_reader(), Arc::new(handle));
        self.metrics.begin(shard);
        self.running.add(shard, &running);
        Ok(Membership { node: self.clone(), shard, running, store, status, phase, ends })
    }
}

/// Beats for the node until it is refused, or another process runs under its name.
async fn spread(
    mut spreader: Spreader<StoreShard>,
    medium: MongoMedium,
    (wanted, known): (WantedShards, watch::Sender<Option<u16>>),
    refusal: watch::Sender<Option<String>>,
) {
    let (node, advertise) = (spreader.node.clone(), spreader.address.clone());
    // One shard has nothing to balance, and each move interrupts its users.
    spreader.hands_over = match shards::learn(&medium, wanted, &known).await {
        Ok(number) => number > 1,
        Err(reason) => {
            refusal.send_replace(Some(reason));
            return;
        }
    };
    let other = spreader.run(Arc::new(medium)).await;
    refusal.send_replace(Some(format!(
        "another process runs as the node {node} (it advertises {other}, this one {advertise}): \
         give each node its own cluster.advertise, and its own data directory"
    )));
}

/// Shows the status of the replicas at intervals.
async fn show(
    metrics: NodeMetrics,
    running: Replicas<StoreShard>,
    (nodes, rules): (KnownNodes, Arc<Mutex<String>>),
) {
    loop {
        for (shard, replica) in running.all() {
            metrics.show(shard, &replica.status());
        }
        let differing = nodes.with_other_rules(&rules.lock());
        metrics.shown.rules_differ.set(differing.len() as i64);
        tokio::time::sleep(SHOWN_EVERY).await;
    }
}

/// Notes an event of the replica; the thread of the replica ends when the lease is over, because
/// the store must be opened again before it can follow.
fn note(
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

/// The membership of this node in a shard, from the opening of its replica until it is closed.
#[derive(Debug)]
pub struct Membership {
    node: Node,
    shard: u16,
    running: Arc<ReplicaHandle<StoreShard>>,
    store: SharedReplica,
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
        self.node.metrics.show(self.shard, &self.status.get());
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
