//! This node of the cluster: its connections, and its replicas of shards.
//!
//! Must never know: HTTP, what the holder does with the store.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use anyhow::Context;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{Semaphore, watch},
};

use super::{
    membership::{Membership, Phase, note},
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
        Event, Medium, NodeName, Replica, Timing,
        medium::MongoMedium,
        runner::{Connections, Replicas, Spreader, Writer, start},
    },
    telemetry::ShardHealth,
};

/// The maximum number of copies that are sent at the same time; more nodes wait.
const COPIES_MAX: usize = 1;
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
        let metrics = self.metrics.clone();
        Ok(Membership { metrics, shard, running, store, status, phase, ends })
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
