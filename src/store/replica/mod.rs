//! A replica: a store whose log is elsewhere. It applies the records of the log in order, and
//! checkpoints them into files of its own, like an embedded store.
//!
//! Replicas that applied the same records have equal states, whenever each of them ran its
//! checkpoints and restarts ([`digest`] compares them). A start continues after the last
//! checkpoint, so the log must keep the records after [`Replica::durable_floor`]. Must never know:
//! where the log is, and who leads.

mod digest;

use std::sync::Arc;

use super::{
    append::Appender,
    apply::{replay::Replay, replicated::Replicated},
    error::{LogFault, StoreError},
    file::{
        medium::Medium,
        names::{JOURNAL_FILE, OBJECTS_FILE},
    },
    handle::Store,
    journal::{
        Journal,
        granularities::as_set,
        record::{Record, founding::Founding},
        record_log::{RecordLog, RecordSink},
    },
    recovery::Opened,
};
use crate::model::{GranularitySet, RetentionRule, UnixMillis};
pub use digest::{DigestDifference, StoreDigest};

/// A store that follows a log.
#[derive(Debug)]
pub struct Replica(Replicated);

/// The effect of a record on a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The record was the next one.
    Now,
    /// The record was applied before, and is ignored.
    Before,
}

/// Returns the levels of the first record.
fn founding_of(first: Option<&[u8]>) -> Result<Founding, StoreError> {
    let problem = match first.map(|bytes| Record::from_bytes(bytes)?.founding) {
        Some(Some(founding)) => return Ok((*founding).clone()),
        Some(None) => "the first record of its log is damaged or has no granularities",
        None => {
            "a new replica begins with the first record of its log, which is missing: copy the replica \
                 from another node"
        }
    };
    Err(StoreError::Mismatch { file: JOURNAL_FILE.to_owned(), problem: problem.to_owned() })
}

/// The reason why a record is not applied.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaFault {
    /// Records before it are missing.
    #[error("record {found} cannot be applied: record {next} is next")]
    Gap {
        /// The next record.
        next: u64,
        /// The number of the refused record.
        found: u64,
    },
    /// The bytes are no record, or the record does not fit the store.
    #[error("record {number} of the log is damaged or belongs to another store: {problem}")]
    Damaged {
        /// The number of the record.
        number: u64,
        /// The fault.
        problem: String,
    },
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogFault),
    /// A file cannot be read or written; the same record can be applied again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Replica {
    /// Returns the bytes of the first record of a new log, which has the granularities and the rules
    /// of retention with which every replica begins. The leader of a new shard appends it; only
    /// fences precede it.
    pub fn first_record(
        granularities: &GranularitySet,
        rules: &[RetentionRule],
        now: UnixMillis,
    ) -> Vec<u8> {
        let (granularities, rules) = (granularities.clone(), rules.to_vec());
        let founding = Some(Arc::new(Founding { granularities, rules }));
        Record { founding, ..Record::of_changes(now) }.to_bytes()
    }

    /// Returns true if a medium has a replica, which can be opened without the first record of its
    /// log.
    ///
    /// # Errors
    /// When the journal cannot be read, is damaged, or belongs to an embedded store.
    pub fn exists(medium: &Arc<dyn Medium>) -> Result<bool, StoreError> {
        let journal = Journal::open(medium)?;
        let exists = journal.changes_through()?.is_some();
        if !exists {
            journal.refuse_embedded()?;
        }
        Ok(exists)
    }

    /// Opens a replica as of its last checkpoint, or creates one. A new replica has the granularities
    /// and rules of retention of `first`, the first record of its log; an existing one keeps its own,
    /// because records change them.
    ///
    /// # Errors
    /// When a file cannot be read, is damaged or was lost, or belongs to an embedded store. After
    /// damage, the replica must be copied from another node, and so must a new replica without the
    /// first record.
    pub fn open(
        medium: Arc<dyn Medium>,
        first: Option<&[u8]>,
        now: UnixMillis,
    ) -> Result<(Store, Self), StoreError> {
        let journal = Arc::new(Journal::open(&medium)?);
        let known = journal.granularities()?;
        let is_new = journal.changes_through()?.is_none();
        let last_now = journal.record_time()?.unwrap_or(UnixMillis::MIN);
        let (set, rules) = if is_new {
            journal.refuse_embedded()?;
            let Founding { granularities, rules } = founding_of(first)?;
            (granularities, Some(rules))
        } else {
            (as_set(&known, JOURNAL_FILE)?, None)
        };
        let levels = (Arc::new(set.with_own_retentions()), rules.as_deref());
        let Opened { store, epochs, has_new_epoch, .. } =
            Store::open_files(medium, journal, &known, levels, now)?;
        store.restore_erasure()?;
        let replay = Replay::begin(&store)?;
        store.refuse_damage(&replay)?;
        store.resume_erasure();
        store.begin_epoch(epochs, has_new_epoch, None, now)?;
        if is_new {
            store.inner.journal.begin_replica()?;
        }
        let changes_through = store.inner.journal.changes_through()?.unwrap_or(0);
        let replicated = Replicated::new(store.clone(), replay, changes_through, last_now);
        Ok((store, Self(replicated)))
    }

    /// Returns the last applied record: after a start, that of the last checkpoint.
    pub fn applied(&self) -> u64 {
        self.0.applied()
    }

    /// Returns the record up to which the log is not needed for a start of this replica.
    ///
    /// # Errors
    /// When the journal's tables cannot be read.
    pub fn durable_floor(&self) -> Result<u64, StoreError> {
        self.0.store.durable_floor()
    }

    /// Returns true while some files contain later records than those that are applied, after the
    /// interruption of a checkpoint. Until then, queries may show some samples of these records, and
    /// checkpoints have no effect.
    pub fn is_behind_files(&self) -> bool {
        self.0.is_behind_files()
    }

    /// Applies the record with the next number; an earlier record is ignored.
    ///
    /// # Errors
    /// When the number leaves a gap, the bytes are damaged, or a file cannot be written: the record
    /// is not applied.
    pub fn apply(&mut self, number: u64, bytes: &[u8]) -> Result<Applied, ReplicaFault> {
        if self.knows(number)? {
            return Ok(Applied::Before);
        }
        let damaged = |problem: &str| ReplicaFault::Damaged { number, problem: problem.to_owned() };
        let record = Record::from_bytes(bytes)
            .ok_or_else(|| damaged("its bytes do not match its checksum"))?;
        match self.0.check(number, &record) {
            Err(StoreError::Corrupt { problem, .. }) => return Err(damaged(&problem)),
            outcome => outcome?,
        }
        self.0.apply(number, record, None)?;
        Ok(Applied::Now)
    }

    /// Passes the next number, at which the log has a fence.
    ///
    /// # Errors
    /// When the number leaves a gap.
    pub fn pass(&mut self, number: u64) -> Result<Applied, ReplicaFault> {
        if self.knows(number)? {
            return Ok(Applied::Before);
        }
        self.0.apply(number, Record::at(self.0.last_now), None)?;
        Ok(Applied::Now)
    }

    /// Returns true when a record is applied.
    fn knows(&self, number: u64) -> Result<bool, ReplicaFault> {
        match self.applied() + 1 {
            next if number > next => Err(ReplicaFault::Gap { next, found: number }),
            next => Ok(number < next),
        }
    }

    /// Applies all further records of a log; returns their number.
    ///
    /// # Errors
    /// See [`Self::apply`]; earlier records are applied.
    pub fn follow(&mut self, log: &mut dyn RecordLog) -> Result<u64, ReplicaFault> {
        let (mut count, mut fault) = (0, None);
        log.read_after(self.applied(), &mut |number, bytes| {
            let outcome = match bytes {
                Some(bytes) => self.apply(number, bytes),
                None => self.pass(number),
            };
            match outcome {
                Ok(_) => {
                    count += 1;
                    std::ops::ControlFlow::Continue(())
                }
                Err(found) => {
                    fault = Some(found);
                    std::ops::ControlFlow::Break(())
                }
            }
        })?;
        fault.map_or(Ok(count), Err)
    }

    /// Leads: returns an appender that appends to the log what it decides. All records of the log
    /// must be applied.
    pub fn lead(self, log: Box<dyn RecordSink>) -> Appender {
        Appender::leading(self.0, log)
    }
}

impl Appender {
    /// Ends the leading of a shard: the replica follows again. `None` for an embedded store.
    pub fn follow(self) -> Option<Replica> {
        self.into_replicated().map(Replica)
    }
}

impl Store {
    /// Returns the record up to which a replica's disk has all changes.
    ///
    /// # Errors
    /// When the journal's tables cannot be read.
    pub fn durable_floor(&self) -> Result<u64, StoreError> {
        self.inner.journal.checkpointed_through()
    }

    /// Refuses a replica whose files were damaged or lost, because its answers would differ from
    /// those of the other replicas.
    fn refuse_damage(&self, replay: &Replay) -> Result<(), StoreError> {
        let inner = &*self.inner;
        let mut problems = self.damaged_partitions();
        problems.extend(inner.journal.damaged_rows().0);
        for index in inner.classes.indexes() {
            if inner.head.read(index)?.through < replay.after() {
                problems.push("the head is older than the last checkpoint".to_owned());
                break;
            }
        }
        inner.objects.check(&mut |fault| problems.push(format!("{OBJECTS_FILE}: {fault}")))?;
        match self.damaged_in_all() {
            0 => {}
            count => problems.push(format!("{count} damaged documents and rows of the head")),
        }
        if !replay.lost().is_empty() {
            problems.push("the head was lost with cells of the last checkpoint".to_owned());
        }
        let Some(first) = problems.first() else { return Ok(()) };
        let problem =
            format!("this replica is incomplete: copy it again from another node ({first})");
        Err(StoreError::Corrupt { file: JOURNAL_FILE.to_owned(), problem })
    }
}
