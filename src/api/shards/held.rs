//! The shards after the first one that this node holds.
//!
//! Must never know: HTTP, the roles of a shard.

use std::{collections::BTreeMap, sync::Arc};

use actix::Addr;
use parking_lot::Mutex;

use crate::{
    actors::Collector,
    api::body::Bodies,
    cluster::ClusterControl,
    kept::LiveValue,
    model::ProjectName,
    query::{PromqlSettings, QueryLimits, QueryResources, SparklineSums},
    replication::runner::{StatusReader, now_ms},
    store::Store,
};

/// A project in a shard that this node holds. Clones are cheap.
#[derive(Debug, Clone)]
pub(super) struct HeldProject {
    /// The number of the shard.
    pub(super) shard: u16,
    /// The store.
    pub(super) store: Store,
    /// The collector of samples from other nodes.
    pub(super) collector: Addr<Collector>,
    /// The memory and turns of queries, with the cache of this store.
    pub(super) resources: QueryResources,
    /// The series that contribute to sparklines.
    pub(super) sparklines: Arc<SparklineSums>,
}

/// A shard that this node holds.
#[derive(Debug)]
pub struct HeldShard {
    projects: BTreeMap<String, HeldProject>,
    status: StatusReader,
}

impl HeldShard {
    /// Creates a shard with its number and its projects.
    pub fn new(
        (shard, projects): (u16, Vec<(ProjectName, Store, Addr<Collector>)>),
        status: StatusReader,
        held: &HeldShards,
    ) -> Self {
        let project = |(name, store, collector): (ProjectName, _, _)| {
            let name = name.to_string();
            let resources = held.resources.of_project(&name);
            (name, HeldProject { shard, store, collector, resources, sparklines: Arc::default() })
        };
        Self { projects: projects.into_iter().map(project).collect(), status }
    }
}

/// The shards that this node holds. Clones are cheap.
#[derive(Debug, Clone)]
pub struct HeldShards {
    shards: Arc<Mutex<BTreeMap<u16, HeldShard>>>,
    control: ClusterControl,
    bodies: Bodies,
    resources: QueryResources,
    promql: LiveValue<PromqlSettings>,
    limits: LiveValue<QueryLimits>,
}

impl HeldShards {
    /// Returns no shards. The limits are for the requests of other nodes.
    pub fn new(
        control: ClusterControl,
        bodies: Bodies,
        (resources, promql, limits): (QueryResources, PromqlSettings, QueryLimits),
    ) -> Self {
        let (promql, limits) = (LiveValue::new(promql), LiveValue::new(limits));
        Self { shards: Arc::default(), control, bodies, resources, promql, limits }
    }

    /// Changes the limits of the requests of other nodes.
    pub fn change_limits(&self, limits: (PromqlSettings, QueryLimits), memory_max: usize) {
        self.promql.set(limits.0);
        self.limits.set(limits.1);
        self.resources.set_memory_max(memory_max);
    }

    /// Adds a shard that this node began to hold.
    pub fn insert(&self, shard: u16, held: HeldShard) {
        self.shards.lock().insert(shard, held);
    }

    /// Removes a shard that this node does not hold any more.
    pub fn remove(&self, shard: u16) {
        self.shards.lock().remove(&shard);
    }

    pub(super) fn control(&self) -> &ClusterControl {
        &self.control
    }

    pub(super) fn bodies(&self) -> &Bodies {
        &self.bodies
    }

    pub(super) fn promql(&self) -> Arc<PromqlSettings> {
        self.promql.get()
    }

    pub(super) fn limits(&self) -> Arc<QueryLimits> {
        self.limits.get()
    }

    /// Returns a project of a shard, while no other node can hold the shard.
    pub(super) fn project(&self, shard: u16, project: &str) -> Option<HeldProject> {
        let shards = self.shards.lock();
        let held = shards.get(&shard).filter(|held| held.status.may_answer(now_ms()))?;
        held.projects.get(project).cloned()
    }
}
