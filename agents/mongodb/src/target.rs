//! One server: its connection, what is remembered of it, and a round of questions.

use std::time::Duration;

use granary_agent_kit::{Readings, Stopwatch, WatchedHost};
use mongodb::{
    bson::{Document, doc},
    options::{ClientOptions, ServerAddress},
};

use crate::{
    connection::{Connection, Costs, Fault},
    databases::{DATABASES_MAX, Sweep},
    field::number,
    polling::Polling,
    replication::{self, Oplog, first_of},
    role::{Role, Standing},
    settings::TargetSettings,
    status::{self, Memory},
};

/// How often the ends of the oplog are looked at.
const OPLOG_EVERY_MS: i64 = 60_000;
/// How often the machine is asked for its cores.
const MACHINE_EVERY_MS: i64 = 3_600_000;
/// Of a round's time, databases have at most this share.
const DATABASES_SHARE: f64 = 0.3;

/// A server, and what is remembered of it.
#[derive(Debug)]
pub(crate) struct Target {
    options: ClientOptions,
    /// The tag `host`.
    host: String,
    tags: Vec<(String, String)>,
    limits: Limits,
    connection: Option<Connection>,
    costs: Costs,
    standing: Standing,
    polling: Polling,
    memory: Memory,
    cores: Option<f64>,
    machine_next_ms: i64,
    oplog: Option<Oplog>,
    oplog_next_ms: i64,
    sweep: Sweep,
    /// Of the round under way; none before it is known who answers.
    readings: Option<Readings>,
    lag_seconds: Option<f64>,
}

/// How long a round may take, and how often databases are asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    pub(crate) databases_every_ms: Option<i64>,
}

impl Target {
    pub(crate) fn new(
        address: &ServerAddress,
        options: ClientOptions,
        settings: &TargetSettings,
        limits: Limits,
    ) -> Self {
        let is_alone = settings.host.as_ref().filter(|_| !settings.uri.contains(','));
        Self {
            options,
            host: is_alone.cloned().unwrap_or_else(|| address.to_string()),
            tags: settings.tags.clone().into_iter().collect(),
            limits,
            connection: None,
            costs: Costs::default(),
            standing: Standing::default(),
            polling: Polling::default(),
            memory: Memory::default(),
            cores: None,
            machine_next_ms: 0,
            oplog: None,
            oplog_next_ms: 0,
            sweep: Sweep::default(),
            readings: None,
            lag_seconds: None,
        }
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Asks the server what is due, if it is, and gives what was read until the time was over.
    pub(crate) async fn sample(&mut self, now_ms: i64, started_ms: i64) -> Readings {
        (self.readings, self.lag_seconds) = (None, None);
        let watch = Stopwatch::start();
        let mut problem = None;
        let is_due = self.polling.is_due(now_ms);
        if is_due {
            let timeout = self.limits.timeout;
            let outcome = match tokio::time::timeout(timeout, self.round(now_ms, watch)).await {
                Ok(outcome) => outcome,
                Err(_) => Err(Fault::Unreachable(format!("no answer within {timeout:?}"))),
            };
            problem = outcome.err().map(|fault| fault.to_string());
            self.costs = self.connection.as_ref().map_or(self.costs, |own| own.costs);
            if self.readings.is_some() {
                self.polling.answered();
            } else {
                self.polling.failed(now_ms, self.standing.role == Role::Mongos);
                // Else the driver would go on to look for it.
                self.connection = None;
            }
        }
        let mut out = self.readings.take().unwrap_or_else(|| Readings::new(self.own_tags()));
        if let Some(problem) = problem {
            out.problem(format!("mongodb {}", self.host), problem);
        } else if !self.polling.is_up() {
            // Not asked in this round: it is still away.
            out.problem(format!("mongodb {}", self.host), "does not answer");
        }
        let is_up = f64::from(u8::from(self.polling.is_up()));
        out.gauge("mongodb_up", "", &[], is_up);
        if is_due {
            self.own_cost(watch, started_ms, &mut out);
        }
        self.say_that_it_is_there(&mut out);
        out
    }

    /// What the questions cost, by this agent's clock.
    fn own_cost(&self, watch: Stopwatch, started_ms: i64, out: &mut Readings) {
        let start = Some(started_ms);
        let Costs { commands, failures, waited } = self.costs;
        let took = watch.elapsed().as_secs_f64();
        out.gauge("mongodb_collect_duration", "seconds", &[], took);
        out.counter("mongodb_collect_commands", "commands", &[], commands as f64, start);
        out.counter("mongodb_collect_failures", "commands", &[], failures as f64, start);
        out.counter("mongodb_collect_waited", "seconds", &[], waited.as_secs_f64(), start);
    }

    fn say_that_it_is_there(&self, out: &mut Readings) {
        if !self.polling.is_up() {
            return;
        }
        let mut tags = self.tags.clone();
        tags.push(("role".to_owned(), self.standing.word().to_owned()));
        tags.extend(self.standing.set.clone().map(|set| ("set".to_owned(), set)));
        let started_ms = self.memory.started_ms();
        out.watched(WatchedHost { host: self.host.clone(), started_ms, tags });
    }

    fn own_tags(&self) -> Vec<(String, String)> {
        let mut tags = self.tags.clone();
        tags.push(("host".to_owned(), self.host.clone()));
        tags
    }

    /// The questions of a round, in order of what matters; the first two must be answered.
    async fn round(&mut self, now_ms: i64, watch: Stopwatch) -> Result<(), Fault> {
        if self.connection.is_none() {
            let options = self.options.clone();
            self.connection = Some(Connection::new(options, self.limits.timeout, self.costs)?);
        }
        let Some(connection) = &mut self.connection else { return Ok(()) };
        self.standing = Standing::of(&connection.hello().await?);
        let mut readings = Readings::new(self.own_tags());
        let role = self.standing.role;
        let Some(connection) = &mut self.connection else { return Ok(()) };
        match connection.ask("admin", server_status()).await {
            Ok(status) => {
                status::read(&status, now_ms, self.cores, &mut self.memory, &mut readings);
            }
            // It has no users, so nobody may ask it for more.
            Err(fault) if role == Role::Arbiter && fault.is_unauthorized() => {}
            Err(fault @ Fault::Refused(..)) => readings.problem(self.place("serverStatus"), fault),
            Err(fault) => return Err(fault),
        }
        let config = f64::from(u8::from(self.standing.is_config));
        readings.gauge("mongodb_is_config_server", "", &[], config);
        self.readings = Some(readings);
        self.replication(now_ms).await?;
        self.machine(now_ms).await?;
        self.databases(now_ms, watch).await
    }

    fn place(&self, command: &str) -> String {
        format!("mongodb {} {command}", self.host)
    }

    /// Asks, and notes a refusal, which is no reason to give up the round.
    async fn ask(&mut self, database: &str, command: Document) -> Result<Option<Document>, Fault> {
        let name = command.keys().next().cloned().unwrap_or_default();
        let Some(connection) = &mut self.connection else { return Ok(None) };
        match connection.ask(database, command).await {
            Ok(answer) => Ok(Some(answer)),
            Err(fault @ Fault::Refused(..)) => {
                let is_usual = self.standing.role == Role::Arbiter && fault.is_unauthorized();
                let place = self.place(&name);
                if let Some(readings) = self.readings.as_mut().filter(|_| !is_usual) {
                    readings.problem(place, fault);
                }
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    async fn replication(&mut self, now_ms: i64) -> Result<(), Fault> {
        if !self.standing.is_member() {
            self.oplog = None;
            return Ok(());
        }
        if let Some(status) = self.ask("admin", doc! { "replSetGetStatus": 1 }).await?
            && let Some(readings) = &mut self.readings
        {
            self.lag_seconds = replication::read(&status, readings).seconds;
        }
        if !self.standing.has_data() || now_ms < self.oplog_next_ms {
            return Ok(());
        }
        self.oplog_next_ms = now_ms.saturating_add(OPLOG_EVERY_MS);
        let first = self.ask("local", end_of_oplog(1)).await?;
        let last = self.ask("local", end_of_oplog(-1)).await?;
        let stats = self.ask("local", oplog_stats()).await?;
        let ends = first.as_ref().and_then(first_of).zip(last.as_ref().and_then(first_of));
        let stats = stats.as_ref().and_then(first_of);
        self.oplog = ends.and_then(|(first, last)| Oplog::of(first, last, stats));
        if let (Some(oplog), Some(readings)) = (&self.oplog, &mut self.readings) {
            oplog.read(readings);
        }
        Ok(())
    }

    async fn machine(&mut self, now_ms: i64) -> Result<(), Fault> {
        if now_ms < self.machine_next_ms || self.standing.role == Role::Arbiter {
            return Ok(());
        }
        self.machine_next_ms = now_ms.saturating_add(MACHINE_EVERY_MS);
        let answer = self.ask("admin", doc! { "hostInfo": 1 }).await?;
        self.cores = answer.as_ref().and_then(|info| number(info, "system.numCores"));
        Ok(())
    }

    /// Goes on with the databases until their share of the round is over.
    async fn databases(&mut self, now_ms: i64, watch: Stopwatch) -> Result<(), Fault> {
        let Some(every_ms) = self.limits.databases_every_ms else { return Ok(()) };
        if !self.standing.has_data() {
            return Ok(());
        }
        let begun = watch.elapsed();
        let share = self.limits.timeout.mul_f64(DATABASES_SHARE);
        if self.sweep.is_due(now_ms) {
            let list = doc! { "listDatabases": 1, "nameOnly": true };
            let Some(answer) = self.ask("admin", list).await? else { return Ok(()) };
            let beyond = self.sweep.begin(&answer);
            if let Some(readings) = self.readings.as_mut().filter(|_| beyond > 0) {
                let cause = format!("{beyond} databases are more than {DATABASES_MAX}");
                readings.problem(format!("mongodb {} databases", self.host), cause);
            }
        } else if self.sweep.next().is_none() {
            return Ok(());
        }
        while watch.elapsed().saturating_sub(begun) < share {
            let Some(database) = self.sweep.next().map(str::to_owned) else { break };
            let answer = self.ask(&database, doc! { "dbStats": 1, "scale": 1 }).await?;
            if let Some(readings) = &mut self.readings {
                self.sweep.answered(answer.as_ref(), readings);
            }
        }
        let spent = i64::try_from((watch.elapsed().saturating_sub(begun)).as_millis());
        if let Some(readings) = &mut self.readings {
            self.sweep.pause(now_ms, spent.unwrap_or(i64::MAX), every_ms, readings);
        }
        Ok(())
    }

    /// The set, and the window of its oplog, of a primary that answered.
    pub(crate) fn window_of_primary(&self) -> Option<(&str, f64)> {
        let is_primary = self.standing.role == Role::Primary && self.polling.is_up();
        let set = self.standing.set.as_deref().filter(|_| is_primary)?;
        Some((set, self.oplog?.window_seconds))
    }

    /// How long this secondary may stay behind before the oplog no longer has what it needs: the
    /// window of its primary's oplog, else of its own, without its lag.
    pub(crate) fn headroom_seconds(&self, window_of: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        let lag = self.lag_seconds?;
        let of_primary = self.standing.set.as_deref().and_then(window_of);
        let window = of_primary.or(self.oplog.map(|own| own.window_seconds))?;
        Some(window - lag)
    }
}

/// Without the sections that are long and of which nothing is read.
fn server_status() -> Document {
    doc! {
        "serverStatus": 1, "locks": 0, "tcmalloc": 0, "sharding": 0, "shardingStatistics": 0,
        "transactions": 0, "twoPhaseCommitCoordinator": 0, "logicalSessionRecordCache": 0,
        "mirroredReads": 0, "flowControl": 0, "readConcernCounters": 0,
    }
}

fn end_of_oplog(order: i32) -> Document {
    doc! {
        "find": "oplog.rs", "sort": { "$natural": order }, "limit": 1, "singleBatch": true,
        "projection": { "ts": 1 },
    }
}

fn oplog_stats() -> Document {
    doc! {
        "aggregate": "oplog.rs", "pipeline": [{ "$collStats": { "storageStats": {} } }],
        "cursor": {},
    }
}
