//! The publisher: writes finished documents into MongoDB, and drops expired collections there.
//!
//! Checkpoints, late samples and erasures change documents, and the role publishes the changed
//! ones. Documents have absolute values, and the mark of a collection is stored in the same
//! database after its documents. Therefore, an interrupted publication can be repeated at any time.
//! While MongoDB is not available, the store notes the changed documents within a memory limit, and
//! nothing waits for MongoDB. Must never know: the bytes of documents, the driver.

mod backlog;
mod expiry;
mod sending;

use std::{
    io,
    thread::{self, JoinHandle},
    time::Duration,
};

use super::{Lifeline, StopFlag};
use crate::{
    clock::{Stopwatch, TrustedClock},
    model::{GranularityIndex, ProjectName, with_causes},
    notify::Retries,
    publish::{Connection, Form, MongoUri, PublishFault},
    store::{Store, StoreError},
    telemetry::{Health, Metrics, Shortfall},
};
use backlog::{Backlog, CollectionGroup, groups};
use sending::Sender;

/// The interval between two checks for changed documents.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The interval between two checks of the marks and of expired collections.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// The only name in the role's retries, which count failures by name.
const WORK: &str = "documents";

/// The parts of the role.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct PublisherParts {
    /// The store as each project sees it.
    pub stores: Vec<Store>,
    pub clock: TrustedClock,
    pub metrics: Metrics,
    pub health: Health,
    pub lifeline: Lifeline,
    pub stop_flag: StopFlag,
    pub uri: MongoUri,
    /// The name of the database of the project `default`, and the prefix of the names for other
    /// projects.
    pub database: String,
    /// The form of the documents of each published granularity.
    pub forms: Vec<(GranularityIndex, Form)>,
}

/// The thread of the publisher.
#[derive(Debug)]
pub struct Publisher {
    thread: JoinHandle<()>,
}

impl Publisher {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the thread cannot start.
    pub fn start(parts: PublisherParts) -> io::Result<Self> {
        let run = move || Role::new(parts).run();
        Ok(Self { thread: thread::Builder::new().name("publisher".into()).spawn(run)? })
    }

    /// Waits for the thread to end, after its stop flag was set.
    pub fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("the publisher's thread panicked");
        }
    }
}

/// The reason why publishing stopped for now.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    MongoDb(#[from] PublishFault),
    #[error("cannot read documents: {}", .0.reason())]
    Store(#[from] StoreError),
    #[error("the partition was dropped")]
    Gone,
}

impl Fault {
    /// Returns true when the fault concerns one collection only, so that others can still be
    /// published.
    fn is_of_one_collection(&self) -> bool {
        match self {
            Self::MongoDb(fault) => fault.is_refusal(),
            Self::Store(_) | Self::Gone => true,
        }
    }
}

/// The database of a project.
#[derive(Debug)]
struct Database {
    store: Store,
    name: String,
    backlog: Backlog,
    /// The reason why MongoDB refused to read the marks.
    refused: Option<PublishFault>,
}

#[derive(Debug)]
struct Role {
    parts: PublisherParts,
    databases: Vec<Database>,
    connection: Option<Connection>,
    retries: Retries,
    /// The time since the role found the oldest unpublished change.
    waiting: Option<Stopwatch>,
    /// True when the marks must be compared with the store, because they were read again.
    must_compare: bool,
    /// The time since the last search for expired collections.
    swept: Option<Stopwatch>,
    is_failing: bool,
}

impl Role {
    fn new(parts: PublisherParts) -> Self {
        let database = |store: &Store| Database {
            store: store.clone(),
            name: database_name(&parts.database, store.project()),
            backlog: Backlog::default(),
            refused: None,
        };
        let databases = parts.stores.iter().map(database).collect();
        let retries = Retries::default();
        Self {
            parts,
            databases,
            connection: None,
            retries,
            waiting: None,
            must_compare: true,
            swept: None,
            is_failing: false,
        }
    }

    fn run(mut self) {
        while self.parts.stop_flag.wait(LOOK_INTERVAL) {
            if self.retries.take_due(&[WORK], self.parts.clock.now()).is_some() {
                let outcome = self.publish();
                self.note(&outcome);
            }
            let waiting = self.waiting.map_or(0, |since| since.elapsed().as_secs());
            self.parts.metrics.publish.waiting_seconds.set(waiting as i64);
        }
        self.parts.lifeline.release();
    }

    /// Publishes the changed documents, and drops the expired collections.
    fn publish(&mut self) -> Result<(), Fault> {
        self.connect()?;
        self.take_changed()?;
        let mut failed = Ok(());
        for index in 0..self.databases.len() {
            match self.publish_database(index) {
                // The daemon may have more rights in the databases of other projects.
                Err(fault) if fault.is_of_one_collection() => failed = Err(fault),
                outcome => outcome?,
            }
        }
        failed
    }

    /// Creates the connection, and reads the marks, which may have changed.
    fn connect(&mut self) -> Result<(), Fault> {
        if self.connection.is_some() && !self.is_failing && !self.is_sweep_due() {
            return Ok(());
        }
        let connection = if let Some(connection) = self.connection.take() {
            connection
        } else {
            let flag = self.parts.stop_flag.clone();
            Connection::new(&self.parts.uri, move || flag.wait(Duration::ZERO))?
        };
        let connection = self.connection.insert(connection);
        for database in &mut self.databases {
            match connection.marks(&database.name) {
                Ok(marks) => {
                    database.backlog.note_marks(marks);
                    database.refused = None;
                }
                Err(fault) if fault.is_refusal() => database.refused = Some(fault),
                Err(fault) => return Err(fault.into()),
            }
        }
        self.must_compare = true;
        Ok(())
    }

    fn is_sweep_due(&self) -> bool {
        self.swept.is_none_or(|since| since.elapsed() >= SWEEP_INTERVAL)
    }

    /// Takes the changed documents from the store, unless earlier ones wait with their sets of
    /// series: the store then keeps its notes, whose size is limited.
    fn take_changed(&mut self) -> Result<(), Fault> {
        if self.databases.iter().any(|database| database.backlog.has_sets()) {
            return Ok(());
        }
        let Some(first) = self.databases.first() else { return Ok(()) };
        if !(self.must_compare || first.store.has_changed()) {
            return Ok(());
        }
        let Some(partitions) = first.store.take_changed()? else { return Ok(()) };
        self.must_compare = false;
        let found: Vec<CollectionGroup> = groups(&first.store, &self.parts.forms, &partitions);
        for database in &mut self.databases {
            database.backlog.add(&found);
        }
        if self.databases.iter().any(|database| !database.backlog.is_empty()) {
            self.waiting.get_or_insert_with(Stopwatch::start);
        }
        Ok(())
    }

    fn publish_database(&mut self, index: usize) -> Result<(), Fault> {
        let is_sweep_due = self.is_sweep_due();
        let Some(connection) = &self.connection else { return Ok(()) };
        let Some(database) = self.databases.get_mut(index) else { return Ok(()) };
        let Database { store, name, backlog, refused } = database;
        if let Some(fault) = refused {
            return Err(fault.clone().into());
        }
        let metrics = &self.parts.metrics.publish;
        let sender = Sender { store, connection, database: name, metrics };
        let mut failed = Ok(());
        for collection in backlog.names() {
            match sender.send(backlog, &collection) {
                // MongoDB may accept other collections.
                Err(fault) if fault.is_of_one_collection() => {
                    backlog.widen(&collection);
                    failed = Err(fault);
                }
                outcome => outcome?,
            }
        }
        if is_sweep_due {
            let moment = crate::clock::Clock::moment(&self.parts.clock);
            let dropped = sender.drop_expired(backlog, moment)?;
            metrics.collections_dropped.inc_by(dropped);
            if index + 1 == self.databases.len() {
                self.swept = Some(Stopwatch::start());
            }
        }
        failed
    }

    /// Reports the outcome of an attempt in the log, the metrics and the daemon's health.
    fn note(&mut self, outcome: &Result<(), Fault>) {
        let hosts = self.parts.uri.hosts();
        let now = self.parts.clock.now();
        match outcome {
            Ok(()) => {
                self.retries.record_answer(WORK);
                self.waiting = None;
                self.parts.health.set_shortfall(Shortfall::Publish, hosts, None);
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!(hosts, "documents are published again");
                }
            }
            Err(Fault::MongoDb(PublishFault::Stopping)) => {
                tracing::debug!(hosts, "publishing ends with the daemon");
            }
            Err(fault) => {
                let cause = with_causes(fault);
                self.retries.record_failure(WORK, now);
                self.waiting.get_or_insert_with(Stopwatch::start);
                self.parts.metrics.publish.errors.inc();
                self.parts.health.set_shortfall(Shortfall::Publish, hosts, Some(cause.clone()));
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(hosts, cause, "cannot publish documents; the daemon retries");
                }
            }
        }
    }
}

/// Returns the name of a project's database.
fn database_name(prefix: &str, project: &ProjectName) -> String {
    if project.is_default() { prefix.to_owned() } else { format!("{prefix}-{}", project.as_str()) }
}
