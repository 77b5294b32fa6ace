//! The life of a node of a cluster: it follows the log, holds the store when it takes it, and
//! follows again.
//!
//! A light service forwards requests while the node follows. The daemon runs while the node holds,
//! as an embedded one, except that its records go to the log. The store is closed in between. Must
//! never know: the protocol of the log.

mod turn;

use std::sync::Arc;

use anyhow::Context;
use tokio::{runtime::Runtime, sync::watch};

use self::turn::Turn;
use super::{
    ExitReason, binding::Addresses, data_dir::DataDir, reloading::ReloadSources,
    shards::OtherShards, signals::Signals, storing::CheckedSettings, systemd,
};
use crate::{
    api::{ClusterParts, HeldShards, ShardRouter},
    cluster::{ClusterControl, Lease, Membership, Node, NodeParts, Phase},
    config::{ClusterSettings, LiveSettings, Settings},
    telemetry::Metrics,
};

/// The threads of the connections to MongoDB.
const THREADS: usize = 2;

/// The lease of this node, as the daemon uses it.
pub(super) struct Holding {
    node: Node,
    held: HeldShards,
    /// The settings of the other shards.
    settings: watch::Sender<Settings>,
    /// The other shards, if there are several.
    router: Option<Arc<ShardRouter>>,
    membership: Arc<Membership>,
    phase: watch::Receiver<Phase>,
}

impl Holding {
    /// Adds the metrics of the node; returns the lease around answers.
    pub(super) fn begin(&self, metrics: &Metrics) -> Lease {
        metrics.add_cluster(&self.node.metrics().shown);
        Lease::new(self.membership.status())
    }

    /// Passes each reload on to the other shards.
    pub(super) fn follow(&self, live: &mut LiveSettings) {
        let settings = self.settings.clone();
        live.after_changes(move |changed| {
            settings.send_replace(changed.clone());
        });
    }

    /// Returns the shards that this node holds; `None` for an embedded daemon.
    pub(super) fn held(holding: Option<&Self>) -> Option<HeldShards> {
        holding.map(|holding| holding.held.clone())
    }

    /// Returns the way to the other shards, if there are several.
    pub(super) fn router(holding: Option<&Self>) -> Option<Arc<ShardRouter>> {
        holding.and_then(|holding| holding.router.clone())
    }

    /// Returns the operation of the cluster; that of an embedded daemon has no means.
    pub(super) fn parts(holding: Option<&Self>) -> ClusterParts {
        ClusterParts(holding.map(|holding| ClusterControl::of(&holding.node)))
    }

    /// Waits until another node can hold the store; forever for an embedded daemon.
    pub(super) async fn lost(holding: &mut Option<Self>) {
        match holding {
            Some(holding) => {
                let node = holding.node.clone();
                tokio::select! {
                    () = holding.is_over() => {}
                    _ = node.refused() => {}
                }
            }
            None => std::future::pending().await,
        }
    }

    async fn is_over(&mut self) {
        // The sender is gone when the thread of the replica has ended.
        drop(self.phase.wait_for(|phase| !matches!(phase, Phase::Holds(_))).await);
    }

    /// Ends the lease in order.
    pub(super) async fn hand_over(mut self) {
        self.membership.hand_over();
        self.is_over().await;
    }
}

/// Runs a node until it is stopped.
pub(super) async fn serve(
    settings: Settings,
    cluster: ClusterSettings,
    sources: &ReloadSources,
) -> anyhow::Result<ExitReason> {
    let addresses = Addresses::bind(&settings)?;
    let mut checked = CheckedSettings::read(settings)?;
    let _data_dir = DataDir::claim(&checked.settings.storage.data_dir)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("mongodb")
        .enable_all()
        .build()
        .context("start the threads of the connections to MongoDB")?;
    let runtime = Background(Some(runtime));
    let parts = NodeParts {
        node: cluster.node,
        advertise: cluster.advertise,
        shards: cluster.shards,
        replicas: cluster.replicas,
        folder: checked.settings.storage.data_dir.clone(),
    };
    tracing::info!(
        node = %parts.node,
        advertise = parts.advertise,
        mongodb = cluster.uri.hosts(),
        "a node of a cluster"
    );
    let node = Node::open(parts, &cluster.uri, &cluster.database, runtime.handle()).await?;
    let mut signals = Signals::new();
    systemd::feed_watchdog();
    tokio::select! {
        () = node.admitted() => {}
        reason = node.refused() => anyhow::bail!(reason),
        () = signals.stop.next() => return Ok(ExitReason::Signal),
    }
    let others = OtherShards::start(node.clone(), checked.settings.clone());
    let reason = loop {
        let turn = Turn { node: &node, addresses: &addresses, sources, others: &others };
        match Box::pin(turn.run(checked, &mut signals)).await {
            Ok(Ok(next)) => {
                others.settings().send_replace(next.settings.clone());
                checked = next;
            }
            Ok(Err(reason)) => break Ok(reason),
            Err(cause) => break Err(cause),
        }
    };
    others.stop().await;
    reason
}

/// The runtime of the connections, which ends without a wait.
struct Background(Option<Runtime>);

impl Background {
    fn handle(&self) -> tokio::runtime::Handle {
        self.0
            .as_ref()
            .map_or_else(tokio::runtime::Handle::current, |runtime| runtime.handle().clone())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
