//! The queries of a round that are not due in every round: running operations, the state and the
//! servers of a sharded cluster, and collections. A query that the server does not support or
//! permit is repeated after an hour.

use std::time::Duration;

use granary_agent_kit::Stopwatch;
use mongodb::bson::{Bson, Document, doc};

use crate::{
    collections::{Step, WAIT_FACTOR, open_cursor},
    connection::Fault,
    field::text,
    operations::{RunningOperations, current_operations_command},
    role::Role,
    sharding::{Sharding, chunks_command},
    target::Target,
};

const OPERATIONS_INTERVAL_MS: i64 = 10_000;
const BALANCER_INTERVAL_MS: i64 = 60_000;
const CLUSTER_INTERVAL_MS: i64 = 60_000;
const CHUNKS_INTERVAL_MS: i64 = 10 * 60_000;
/// The time after which a refused query is repeated.
const REFUSED_INTERVAL_MS: i64 = 3_600_000;
/// The maximum share of a round's time limit for collections.
const COLLECTIONS_SHARE: f64 = 0.2;
/// The minimum time limit of a query for collections.
const STEP_LIMIT_MIN: Duration = Duration::from_millis(100);

impl Target {
    /// Sends a query that servers may not support, or may not permit; such a query is only repeated
    /// after an hour. A refusal is reported in every round.
    pub(crate) async fn run_optional(
        &mut self,
        name: &'static str,
        database: &str,
        command: Document,
        now_ms: i64,
    ) -> Result<Option<Document>, Fault> {
        let Some(connection) = &mut self.connection else { return Ok(None) };
        match connection.run_command(database, command).await {
            Ok(response) => {
                self.slow.refused.remove(name);
                Ok(Some(response))
            }
            Err(fault @ Fault::Refused(..)) => {
                let wait_ms = if fault.is_permanent() { REFUSED_INTERVAL_MS } else { 0 };
                let retry_ms = now_ms.saturating_add(wait_ms);
                self.slow.refused.insert(name, (retry_ms, fault));
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Sends the queries that are due.
    pub(crate) async fn query_slowly(
        &mut self,
        now_ms: i64,
        watch: Stopwatch,
    ) -> Result<(), Fault> {
        if !self.server_role.has_data() && self.server_role.role != Role::Mongos {
            return Ok(());
        }
        self.query_operations(now_ms).await?;
        if self.server_role.role == Role::Mongos {
            if self.reporter.is_elected(&self.address, now_ms, self.limits.interval_ms) {
                self.query_sharding(now_ms).await?;
            } else {
                self.slow.sharding = Sharding::default();
            }
            return self.query_cluster(now_ms).await;
        }
        self.continue_collections(now_ms, watch).await?;
        self.query_profiles(now_ms, watch).await
    }

    async fn query_operations(&mut self, now_ms: i64) -> Result<(), Fault> {
        if now_ms < self.slow.operations_next_ms || self.slow.is_refused("$currentOp", now_ms) {
            return Ok(());
        }
        self.slow.operations_next_ms = now_ms.saturating_add(OPERATIONS_INTERVAL_MS);
        // Values of an earlier round would look current when the server does not answer.
        self.slow.operations = None;
        let command = current_operations_command(self.server_role.role == Role::Mongos);
        let response = self.run_optional("$currentOp", "admin", command, now_ms).await?;
        self.slow.operations = response.as_ref().map(RunningOperations::of);
        Ok(())
    }

    async fn query_sharding(&mut self, now_ms: i64) -> Result<(), Fault> {
        if now_ms >= self.slow.balancer_next_ms && !self.slow.is_refused("balancerStatus", now_ms) {
            self.slow.balancer_next_ms = now_ms.saturating_add(BALANCER_INTERVAL_MS);
            self.slow.sharding.note_balancer(None);
            let command = doc! { "balancerStatus": 1 };
            let status = self.run_optional("balancerStatus", "admin", command, now_ms).await?;
            self.slow.sharding.note_balancer(status.as_ref());
        }
        if now_ms >= self.slow.chunks_next_ms && !self.slow.is_refused("config.chunks", now_ms) {
            self.slow.chunks_next_ms = now_ms.saturating_add(CHUNKS_INTERVAL_MS);
            self.slow.sharding.note_chunks(None);
            let watch = Stopwatch::start();
            let chunks =
                self.run_optional("config.chunks", "config", chunks_command(), now_ms).await?;
            let spent_ms = i64::try_from(watch.elapsed().as_millis()).unwrap_or(i64::MAX);
            let wait_ms = spent_ms.saturating_mul(WAIT_FACTOR).max(CHUNKS_INTERVAL_MS);
            self.slow.chunks_next_ms = now_ms.saturating_add(wait_ms);
            self.slow.sharding.note_chunks(chunks.as_ref());
        }
        Ok(())
    }

    /// Queries the servers of the cluster, if they are discovered.
    async fn query_cluster(&mut self, now_ms: i64) -> Result<(), Fault> {
        if self.topology.is_none() || now_ms < self.slow.cluster_next_ms {
            return Ok(());
        }
        self.slow.cluster_next_ms = now_ms.saturating_add(CLUSTER_INTERVAL_MS);
        if !self.slow.is_refused("getShardMap", now_ms) {
            let command = doc! { "getShardMap": 1 };
            let map = self.run_optional("getShardMap", "admin", command, now_ms).await?;
            if let Some(map) = map {
                self.update_topology(|topology| topology.note_shard_map(&map, now_ms));
            }
        }
        if !self.slow.is_refused("config.mongos", now_ms) {
            let command = doc! {
                "find": "mongos", "projection": { "ping": 1 }, "sort": { "ping": -1 },
                "limit": 1_000, "batchSize": 1_000,
            };
            let routers = self.run_optional("config.mongos", "config", command, now_ms).await?;
            if let Some(routers) = routers {
                self.update_topology(|topology| topology.note_routers(&routers));
            }
        }
        Ok(())
    }

    /// Continues the sweep of collections until its share of the round is used.
    async fn continue_collections(&mut self, now_ms: i64, watch: Stopwatch) -> Result<(), Fault> {
        let Some(interval_ms) = self.limits.databases_every_ms else { return Ok(()) };
        let series_max = self.limits.collections_max;
        if series_max == 0 {
            return Ok(());
        }
        let started = watch.elapsed();
        let share = self.limits.timeout.mul_f64(COLLECTIONS_SHARE);
        if self.slow.collections.is_due(now_ms) {
            // A missing privilege is reported by the sweep of databases.
            let list = doc! { "listDatabases": 1, "nameOnly": true };
            let Some(response) = self.run_command("admin", list).await? else { return Ok(()) };
            let databases = response.get_array("databases").map(Vec::as_slice).unwrap_or_default();
            let name = |database: &Bson| text(database.as_document()?, "name").map(str::to_owned);
            self.slow.collections.start(databases.iter().filter_map(name));
            self.slow.operations_slow.set_databases(databases.iter().filter_map(name));
        }
        while watch.elapsed().saturating_sub(started) < share {
            let Some(step) = self.slow.collections.next(series_max) else { break };
            // A server that waits for a lock gives up before the round does.
            let left = share.saturating_sub(watch.elapsed().saturating_sub(started));
            self.run_step(step, series_max, left.max(STEP_LIMIT_MIN)).await?;
        }
        let spent = i64::try_from((watch.elapsed().saturating_sub(started)).as_millis());
        let spent_ms = spent.unwrap_or(i64::MAX);
        self.slow.collections.end_round(now_ms, spent_ms, interval_ms);
        Ok(())
    }

    async fn run_step(
        &mut self,
        step: Step,
        series_max: usize,
        limit: Duration,
    ) -> Result<(), Fault> {
        let (database, command) = step.command();
        let Some(connection) = &mut self.connection else { return Ok(()) };
        match connection.run_command_within(limit, database, command).await {
            Ok(response) => {
                let cursor = open_cursor(&response).filter(|_| matches!(step, Step::List(_)));
                if let Some(cursor) = cursor {
                    let kill = doc! { "killCursors": "$cmd.listCollections", "cursors": [cursor] };
                    self.run_command(database, kill).await?;
                }
                self.slow.collections.note_response(step, &response, series_max);
                Ok(())
            }
            Err(fault @ Fault::Refused(..)) => {
                self.slow.collections.note_refusal(&step, &fault);
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }

    /// Adds the values of these queries from this round or an earlier round, and the refusals.
    pub(crate) fn add_slow_values(&mut self) {
        let started_ms = self.server_state.started_ms();
        let Some(readings) = &mut self.readings else { return };
        let is_router = self.server_role.role == Role::Mongos;
        if !self.server_role.has_data() && !is_router {
            return;
        }
        if let Some(operations) = &self.slow.operations {
            operations.push_values(readings);
        }
        if is_router {
            self.slow.sharding.push_values(readings);
        } else {
            self.slow.operations_slow.push_values(readings);
            if let Some(problem) = self.slow.operations_slow.take_problem() {
                readings.problem(format!("mongodb {} profiler", self.host), problem);
            }
            if let Some(problem) = self.slow.operations_slow.refusal() {
                readings.problem(format!("mongodb {} system.profile", self.host), problem);
            }
            self.slow.collections.push_values(started_ms, readings);
            if let Some(problem) = self.slow.collections.problem() {
                readings.problem(format!("mongodb {} collections", self.host), problem);
            }
        }
        for (name, (_, fault)) in &self.slow.refused {
            readings.problem(format!("mongodb {} {name}", self.host), fault);
        }
    }
}
