//! The queries of a round, and their schedules.

use granary_agent_kit::{Readings, Stopwatch};
use mongodb::bson::{Document, doc};

use crate::{
    collections::CollectionSweep,
    connection::{Connection, Fault},
    replication::{self, Oplog, first_document},
    role::{Role, ServerRole},
    status,
    target::Target,
};

/// The interval of queries for the oplog.
const OPLOG_INTERVAL_MS: i64 = 60_000;
/// The interval of queries for the machine and the options of the server.
const MACHINE_INTERVAL_MS: i64 = 3_600_000;
/// The maximum share of a round's time limit for databases.
const DATABASES_SHARE: f64 = 0.3;

impl Target {
    /// Sends the queries of a round, in order of importance. The server must answer the first two
    /// queries.
    pub(crate) async fn query_server(
        &mut self,
        now_ms: i64,
        watch: Stopwatch,
    ) -> Result<(), Fault> {
        if self.connection.is_none() {
            let options = self.options.clone();
            self.connection = Some(Connection::new(options, self.limits.timeout, self.costs)?);
        }
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let hello = connection.hello().await?;
        // A server that starts does not know its set yet, and its counters must keep their series.
        let known_set = self.server_role.set.take();
        self.server_role = ServerRole::of(&hello);
        self.server_role.set = self.server_role.set.take().or(known_set);
        let mut readings = Readings::new(self.set_tags());
        let role = self.server_role.role;
        let Some(connection) = &mut self.connection else { return Ok(()) };
        match connection.run_command("admin", server_status_command()).await {
            Ok(status) => {
                let started_ms = self.server_state.started_ms();
                status::read(
                    &status,
                    now_ms,
                    self.machine.cores,
                    &mut self.server_state,
                    &mut readings,
                );
                if self.server_state.started_ms() != started_ms {
                    // Its counters began again, so that earlier values would count as growth.
                    self.slow.collections = CollectionSweep::default();
                }
            }
            // An arbiter has no users, so further queries are not permitted.
            Err(fault) if role == Role::Arbiter && fault.is_unauthorized() => {}
            Err(fault @ Fault::Refused(..)) => {
                readings.problem(self.problem_object("serverStatus"), fault);
            }
            Err(fault) => return Err(fault),
        }
        let is_config_server = f64::from(u8::from(self.server_role.is_config));
        readings.gauge("mongodb_is_config_server", "", &[], is_config_server);
        self.readings = Some(readings);
        self.query_replication(&hello, now_ms).await?;
        self.query_machine(now_ms).await?;
        if let Some(readings) = &mut self.readings {
            self.machine.push_values(readings);
        }
        self.continue_sweep(now_ms, watch).await?;
        self.query_slowly(now_ms, watch).await
    }

    fn problem_object(&self, command: &str) -> String {
        format!("mongodb {} {command}", self.host)
    }

    /// Sends a query and records a refusal, which does not end the round.
    pub(crate) async fn run_command(
        &mut self,
        database: &str,
        command: Document,
    ) -> Result<Option<Document>, Fault> {
        let name = command.keys().next().cloned().unwrap_or_default();
        let Some(connection) = &mut self.connection else { return Ok(None) };
        match connection.run_command(database, command).await {
            Ok(response) => Ok(Some(response)),
            Err(fault @ Fault::Refused(..)) => {
                let is_expected = self.server_role.role == Role::Arbiter && fault.is_unauthorized();
                let object = self.problem_object(&name);
                if let Some(readings) = self.readings.as_mut().filter(|_| !is_expected) {
                    readings.problem(object, fault);
                }
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    async fn query_replication(&mut self, hello: &Document, now_ms: i64) -> Result<(), Fault> {
        if !self.server_role.is_member() {
            self.oplog = None;
            return Ok(());
        }
        let status = self.run_command("admin", doc! { "replSetGetStatus": 1 }).await?;
        self.update_topology(|topology| {
            topology.note_member(&self.address, hello, status.as_ref(), now_ms);
        });
        let mut set_readings = Readings::new(self.set_tags());
        if let Some(status) = &status {
            self.lag_seconds = replication::push_replication(status, &mut set_readings).seconds;
        }
        self.set_readings = Some(set_readings);
        if !self.server_role.has_data() {
            return Ok(());
        }
        if now_ms >= self.oplog_next_ms {
            self.query_oplog(now_ms).await?;
        }
        // The values are queried each minute, and every round repeats them.
        if let (Some(oplog), Some(readings)) = (&self.oplog, &mut self.set_readings) {
            oplog.push_values(readings);
        }
        Ok(())
    }

    async fn query_oplog(&mut self, now_ms: i64) -> Result<(), Fault> {
        self.oplog_next_ms = now_ms.saturating_add(OPLOG_INTERVAL_MS);
        let first = self.run_command("local", end_of_oplog_command(1)).await?;
        let last = self.run_command("local", end_of_oplog_command(-1)).await?;
        let stats = self.run_command("local", oplog_stats_command()).await?;
        let first_and_last =
            first.as_ref().and_then(first_document).zip(last.as_ref().and_then(first_document));
        let stats = stats.as_ref().and_then(first_document);
        self.oplog = first_and_last.and_then(|(first, last)| Oplog::of(first, last, stats));
        Ok(())
    }

    async fn query_machine(&mut self, now_ms: i64) -> Result<(), Fault> {
        if now_ms < self.machine_next_ms || self.server_role.role == Role::Arbiter {
            return Ok(());
        }
        let mut commands = vec![("hostInfo", doc! { "hostInfo": 1 })];
        if self.server_role.has_data() {
            commands.push(("getCmdLineOpts", doc! { "getCmdLineOpts": 1 }));
        }
        let mut has_failed = false;
        for (name, command) in commands {
            match self.run_optional(name, "admin", command, now_ms).await? {
                Some(response) => self.machine.update(name, &response),
                // A temporary refusal, such as one during an election, is no reason to wait.
                None => has_failed |= !self.slow.is_refused(name, now_ms),
            }
        }
        if !has_failed {
            self.machine_next_ms = now_ms.saturating_add(MACHINE_INTERVAL_MS);
        }
        Ok(())
    }

    /// Continues the sweep of databases until its share of the round is used.
    async fn continue_sweep(&mut self, now_ms: i64, watch: Stopwatch) -> Result<(), Fault> {
        let Some(interval_ms) = self.limits.databases_every_ms else { return Ok(()) };
        if !self.server_role.has_data() {
            return Ok(());
        }
        let started = watch.elapsed();
        let share = self.limits.timeout.mul_f64(DATABASES_SHARE);
        if self.sweep.is_due(now_ms) {
            let list = doc! { "listDatabases": 1, "nameOnly": true };
            let Some(response) = self.run_command("admin", list).await? else { return Ok(()) };
            self.sweep.start(&response);
        } else if self.sweep.next().is_none() {
            return Ok(());
        }
        while watch.elapsed().saturating_sub(started) < share {
            let Some(database) = self.sweep.next().map(str::to_owned) else { break };
            let response = self.run_command(&database, doc! { "dbStats": 1, "scale": 1 }).await?;
            self.sweep.note_response(response.as_ref(), now_ms);
        }
        let spent = i64::try_from((watch.elapsed().saturating_sub(started)).as_millis());
        self.sweep.end_round(now_ms, spent.unwrap_or(i64::MAX), interval_ms);
        Ok(())
    }
}

/// Builds `serverStatus` without long sections that the agent does not use.
fn server_status_command() -> Document {
    doc! {
        "serverStatus": 1, "locks": 0, "tcmalloc": 0, "sharding": 0,
        "twoPhaseCommitCoordinator": 0, "logicalSessionRecordCache": 0, "mirroredReads": 0,
        "readConcernCounters": 0,
    }
}

fn end_of_oplog_command(order: i32) -> Document {
    doc! {
        "find": "oplog.rs", "sort": { "$natural": order }, "limit": 1, "singleBatch": true,
        "projection": { "ts": 1 },
    }
}

fn oplog_stats_command() -> Document {
    doc! {
        "aggregate": "oplog.rs", "pipeline": [{ "$collStats": { "storageStats": {} } }],
        "cursor": {},
    }
}
