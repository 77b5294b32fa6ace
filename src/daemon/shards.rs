//! The shards of a node after the first one: each follows its log, holds the shard when it takes
//! it, and follows again, beside the daemon.
//!
//! A shard that is held has the roles of a store, and collectors for the requests of the node that
//! answers for the whole. Must never know: routes, the first shard.

use std::{sync::Arc, time::Duration};

use actix::{Actor, Addr, Arbiter};
use anyhow::Context;
use tokio::{
    sync::watch,
    task::{JoinHandle, spawn_blocking, spawn_local},
    time::sleep,
};

use super::{
    listeners::shard_collector_parts,
    projects::cardinality,
    store_roles::StoreRoles,
    storing::{lead, upkeep},
};
use crate::{
    actors::{Collector, PublishedState, Watcher, lifelines},
    api::{Bodies, BodyLimits, HeldShard, HeldShards},
    clock::TrustedClock,
    cluster::{ClusterControl, Membership, Node, Phase},
    config::{LiveSettings, Settings, bounds},
    ingest::memory::IngestMemory,
    kept::LiveValue,
    model::{GranularitySet, ProjectName},
    query::{QueryLimits, QueryResources, Scheduler},
    store::{Appender, Store},
    telemetry::{Health, Metrics},
};

/// The wait after a shard could not be opened or held.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// The shards after the first one.
pub(super) struct OtherShards {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    held: HeldShards,
    settings: watch::Sender<Settings>,
}

impl OtherShards {
    /// Starts the shards when their number is known.
    pub(super) fn start(node: Node, settings: Settings) -> Self {
        let (stop, stops) = watch::channel(false);
        // Queries of other nodes wait for no turn of this node's own queries, which may wait for
        // them.
        let memory_max = settings.limits.query_memory_max;
        let resources = QueryResources::new(Scheduler::for_this_machine(), memory_max);
        let reading = (resources, settings.promql_settings(), query_limits(&settings));
        let held = HeldShards::new(ClusterControl::of(&node), shard_bodies(&settings), reading);
        let (settings, changes) = watch::channel(settings);
        spawn_local(follow_limits(held.clone(), changes.clone()));
        let published = held.clone();
        let task = spawn_local(async move {
            let count = tokio::select! {
                count = node.shards().known() => count,
                () = is_set(stops.clone()) => return,
            };
            let shard = |shard| {
                let turn = Shard {
                    number: shard,
                    count,
                    node: node.clone(),
                    settings: changes.clone(),
                    held: published.clone(),
                };
                spawn_local(turn.run(stops.clone()))
            };
            let shards: Vec<_> = (1..count).map(shard).collect();
            for shard in shards {
                if let Err(cause) = shard.await {
                    tracing::error!(%cause, "a shard ended");
                }
            }
        });
        Self { stop, task, held, settings }
    }

    /// Returns the shards that this node holds.
    pub(super) fn held(&self) -> &HeldShards {
        &self.held
    }

    /// Returns the means to change the settings of all shards.
    pub(super) fn settings(&self) -> &watch::Sender<Settings> {
        &self.settings
    }

    /// Hands all shards over, and waits for their end.
    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        if let Err(cause) = self.task.await {
            tracing::error!(%cause, "the shards ended");
        }
    }
}

async fn is_set(mut stops: watch::Receiver<bool>) {
    // The shards also stop when the sender was dropped.
    drop(stops.wait_for(|stops| *stops).await);
}

/// Applies changed limits to the requests of other nodes, as long as the settings can change.
async fn follow_limits(held: HeldShards, mut changes: watch::Receiver<Settings>) {
    while changes.changed().await.is_ok() {
        let settings = changes.borrow_and_update().clone();
        let limits = (settings.promql_settings(), query_limits(&settings));
        held.change_limits(limits, settings.limits.query_memory_max);
    }
}

fn query_limits(settings: &Settings) -> QueryLimits {
    QueryLimits::new(settings.query_series_max(), settings.limits.query_points_max)
}

/// Returns the limits of the bodies that other nodes send.
fn shard_bodies(settings: &Settings) -> Bodies {
    let memory = IngestMemory::new(settings.ingest.body_memory_max);
    let limits = BodyLimits::of(settings.ingest.body_memory_max);
    Bodies::new(LiveValue::new(limits), memory, settings.server.client_timeout)
}

struct Shard {
    number: u16,
    /// The number of all shards, which share the memory of the node.
    count: u16,
    node: Node,
    settings: watch::Receiver<Settings>,
    held: HeldShards,
}

impl Shard {
    async fn run(self, stops: watch::Receiver<bool>) {
        while !*stops.borrow() {
            if let Err(cause) = self.turn(&stops).await {
                let cause = format!("{cause:#}");
                tracing::error!(shard = self.number, cause, "cannot use the shard; trying again");
                self.node.health().fail(self.number, cause);
                tokio::select! {
                    () = sleep(RETRY_PAUSE) => {}
                    () = is_set(stops.clone()) => {}
                }
            }
        }
    }

    /// One membership: the node follows the log, and may hold the shard after that.
    async fn turn(&self, stops: &watch::Receiver<bool>) -> anyhow::Result<()> {
        let (node, shard) = (self.node.clone(), self.number);
        let settings = upkeep(&self.settings.borrow());
        let membership = spawn_blocking(move || node.join(shard, settings)).await??;
        let membership = Arc::new(membership);
        self.node.health().follow(shard);
        let outcome = self.follow(&membership, stops).await;
        membership.hand_over();
        let membership = Arc::into_inner(membership).context("the shard is still in use")?;
        if !spawn_blocking(move || membership.end()).await? {
            anyhow::bail!("a thread still uses the shard");
        }
        outcome
    }

    async fn follow(
        &self,
        membership: &Arc<Membership>,
        stops: &watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let mut phase = membership.phase();
        loop {
            tokio::select! {
                () = is_set(stops.clone()) => return Ok(()),
                changed = phase.changed() => {
                    let now = phase.borrow_and_update().clone();
                    match now {
                        Phase::Holds(_) => return self.hold(membership, stops).await,
                        Phase::Follows if changed.is_ok() => {}
                        Phase::Follows | Phase::Lost => return Ok(()),
                        Phase::Damaged(fault) => anyhow::bail!("the replica is damaged: {fault}"),
                    }
                }
            }
        }
    }

    /// Holds the shard until another node can hold it.
    async fn hold(
        &self,
        membership: &Arc<Membership>,
        stops: &watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let mut changes = self.settings.clone();
        let settings = changes.borrow_and_update().clone();
        let (store, appender) = lead(&settings, membership).await?;
        let settings = settings_of(&settings, store.granularities());
        let mut holding = Holding::start(settings, self.count, &store, appender)?;
        self.node.health().hold(self.number, holding.health.clone());
        let of_shards = &self.node.metrics().shown.of_shards;
        of_shards.insert(self.number, holding.metrics.clone(), store);
        let status = membership.status();
        let held = HeldShard::new((self.number, holding.projects.clone()), status, &self.held);
        self.held.insert(self.number, held);
        let mut phase = membership.phase();
        let outcome = loop {
            tokio::select! {
                _ = phase.wait_for(|phase| !matches!(phase, Phase::Holds(_))) => break Ok(()),
                () = is_set(stops.clone()) => break Ok(()),
                death = holding.watcher.death() => {
                    break Err(anyhow::anyhow!("the {} ended", death.role));
                }
                Ok(()) = changes.changed() => holding.change(&changes.borrow_and_update()),
            }
        };
        self.held.remove(self.number);
        of_shards.remove(self.number);
        self.node.health().follow(self.number);
        holding.stop(membership).await;
        outcome
    }
}

/// Returns the settings of a shard with the levels of its log.
fn settings_of(settings: &Settings, levels: &GranularitySet) -> Settings {
    let mut settings = settings.clone();
    settings.granularities = levels.clone();
    settings.publishing = None;
    settings
}

/// The roles of a shard that this node holds.
struct Holding {
    roles: StoreRoles,
    projects: Vec<(ProjectName, Store, Addr<Collector>)>,
    arbiters: Vec<Arbiter>,
    watcher: Watcher,
    metrics: Metrics,
    health: Health,
    settings: LiveSettings,
}

impl Holding {
    fn start(
        settings: Settings,
        count: u16,
        store: &Store,
        mut appender: Appender,
    ) -> anyhow::Result<Self> {
        let mut live = LiveSettings::new(settings);
        let settings = &mut live;
        appender.set_limits(bounds::store_limits(settings));
        let (cached, count) = (store.clone(), usize::from(count.max(1)));
        settings.follow(move |settings| {
            cached.set_cache_bytes_max(settings.storage.cache_bytes_max / count);
        });
        let (published, (lifelines, watcher)) = (PublishedState::default(), lifelines());
        let metrics = Metrics::new().context("register metrics")?;
        let clock = TrustedClock::new(bounds::trust_rules(), None);
        let cardinality = cardinality(settings, store, &published);
        let reports = (&metrics, &published);
        let parts = (store, appender);
        let roles = StoreRoles::start(settings, parts, &clock, reports, &cardinality, &lifelines)?;
        let (mut projects, mut arbiters) = (Vec::new(), Vec::new());
        for (store, _) in cardinality {
            let name = store.project().clone();
            let writer = roles.writer().for_project(&name);
            let tally = published.ingest.for_project(&name);
            let common = (&clock, &metrics, tally);
            let parts = shard_collector_parts(settings, store.clone(), writer, common);
            let (arbiter, lifeline) = (Arbiter::new(), lifelines.for_role("collector of a shard"));
            let collector = Collector::start_in_arbiter(&arbiter.handle(), move |_| {
                Collector::new(parts, lifeline)
            });
            arbiters.push(arbiter);
            projects.push((name, store, collector));
        }
        let health = published.health;
        Ok(Self { roles, projects, arbiters, watcher, metrics, health, settings: live })
    }

    /// Applies the settings of a reload. Those of the levels need the store to be opened again.
    fn change(&mut self, settings: &Settings) {
        self.settings.replace(settings_of(settings, &self.settings.granularities));
    }

    /// Ends the roles in order; another node can take the shard when the waiting batches are
    /// committed.
    async fn stop(self, membership: &Membership) {
        let Self { mut roles, projects, arbiters, watcher, .. } = self;
        let step = bounds::SHUTDOWN_TIMEOUT / 4;
        roles.commit(step).await;
        membership.hand_over();
        roles.end_background(step).await;
        roles.finish(step).await;
        for arbiter in &arbiters {
            arbiter.stop();
        }
        drop((projects, watcher));
    }
}
