//! The comparison of a database's log with the one that a replica follows from.
//!
//! The row of a shard has the identity of its log. A backup of MongoDB has the same identity, so a
//! replica also compares the log's fences, which are never deleted, and its last entry. Behind the
//! end of a restored log, the next holder begins with a fence that the replica does not have. Must
//! never know: entries that are not applied yet.

use crate::replication::{
    entry::{Body, Entry, EntryId, ShardRow},
    medium::{Answer, Command},
    mutants::{Mutant, is_on},
    shard::{Origin, Shard, ShardFault},
};

/// The result of the comparison with a row.
#[derive(Debug)]
pub(crate) enum Origins {
    /// The state follows from this log, or from none.
    Same,
    /// The database has no log: the replica founds this one, which begins after a number.
    Create(i64, u64),
    /// The state follows from another log.
    Foreign(String),
}

/// Compares the row of a shard with the origin of a state, which adopts the log if it has no
/// entries. `fresh` is the identity of a new log.
///
/// # Errors
/// The origin cannot be written.
pub(crate) fn judge_row(
    row: Option<&ShardRow>,
    follows: bool,
    fresh: i64,
    state: &mut impl Shard,
) -> Result<Origins, ShardFault> {
    let (origin, applied) = (state.origin(), state.applied());
    match (row, origin) {
        (_, None) if !follows => Ok(Origins::Same),
        (None, None) => {
            // An answer that gets lost must not make the new log another's.
            let origin = Origin { log: fresh, is_founded: false, fence: None };
            state.set_origin(origin)?;
            Ok(Origins::Create(fresh, applied))
        }
        (None, Some(origin)) if !origin.is_founded => Ok(Origins::Create(origin.log, applied)),
        (None, Some(origin)) => Ok(Origins::Foreign(format!(
            "the database has no log, but this replica belongs to log {:016x}: {REMEDY}",
            origin.log
        ))),
        (Some(row), Some(origin)) if origin.log == row.log => {
            if !origin.is_founded {
                state.set_origin(Origin { is_founded: true, ..origin })?;
            }
            Ok(Origins::Same)
        }
        (Some(row), _) if applied == 0 => {
            state.set_origin(Origin { log: row.log, is_founded: true, fence: None })?;
            Ok(Origins::Same)
        }
        (Some(row), None) => Ok(Origins::Foreign(format!(
            "this data directory was restored or migrated and begins a new log, but the database \
             already has log {:016x}: use an empty database, or empty the data directory to copy \
             the store of the other nodes",
            row.log
        ))),
        (Some(_), Some(_)) if is_on(Mutant::IgnoresOrigin) => Ok(Origins::Same),
        (Some(row), Some(origin)) => Ok(Origins::Foreign(format!(
            "this replica belongs to log {:016x}, and the database has log {:016x}: {REMEDY}",
            origin.log, row.log
        ))),
    }
}

const REMEDY: &str = "check the database in cluster.uri; if the log of this replica is lost, \
                      restore a snapshot into an empty database, or empty the data directory";

/// A comparison in progress.
#[derive(Debug)]
pub(crate) struct Verifier {
    shard: u16,
    origin: Option<Origin>,
    applied: u64,
    step: Step,
    /// The last fence up to the applied number: if the replica remembers one, whose epoch had a
    /// holder. A take that found its number deleted leaves a fence that ends nothing.
    last: Option<(u64, i64)>,
    fault: Option<String>,
    lacks_last: bool,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Fence(u64, i64),
    LastFence,
    Last,
    Row,
}

/// The result of an answer.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The next command must be sent at once.
    Continues(Verifier),
    /// The state follows from the log.
    Same,
    /// The log begins with this replica.
    Create(i64, u64),
    /// The state follows from another log, or from a later state of it.
    Foreign(String),
}

impl Verifier {
    pub(crate) fn new(shard: u16, state: &impl Shard) -> Self {
        let origin = state.origin();
        let fence = origin.and_then(|origin| origin.fence);
        let step = fence.map_or(Step::LastFence, |(number, nonce)| Step::Fence(number, nonce));
        let (applied, last, fault) = (state.applied(), None, None);
        Self { shard, origin, applied, step, last, fault, lacks_last: false }
    }

    /// Returns the next command.
    pub(crate) fn command(&self) -> Command {
        let entry = |number| EntryId::new(self.shard, number);
        match self.step {
            Step::Fence(number, _) => Command::ReadEntry(entry(number)),
            Step::LastFence => {
                let held = self.origin.is_some_and(|origin| origin.fence.is_some());
                Command::LastFence { through: entry(self.applied), held }
            }
            Step::Last => Command::ReadEntry(entry(self.applied)),
            Step::Row => Command::ReadShard(self.shard),
        }
    }

    /// Processes an answer.
    ///
    /// # Errors
    /// The origin cannot be written.
    pub(crate) fn accept(
        mut self,
        answer: Answer,
        (follows, fresh): (bool, i64),
        state: &mut impl Shard,
    ) -> Result<Verdict, ShardFault> {
        self.step = match (self.step, answer) {
            (Step::Fence(number, nonce), Answer::Entry(entry)) => {
                let is_same = |entry: &Entry| entry.body == Body::Fence && entry.nonce == nonce;
                if !entry.is_some_and(|entry| is_same(&entry)) {
                    self.note_older(format_args!("fence {number}"));
                }
                Step::LastFence
            }
            (Step::LastFence, Answer::Entry(entry)) => {
                self.last = entry.map(|entry| (entry.id.number, entry.nonce));
                let known = self.origin.and_then(|origin| origin.fence);
                if let (Some((last, _)), Some((known, _))) = (self.last, known)
                    && last > known
                {
                    self.note_older(format_args!("the record before fence {last}"));
                }
                if self.applied == 0 { Step::Row } else { Step::Last }
            }
            (Step::Last, Answer::Entry(entry)) => {
                self.lacks_last = entry.is_none();
                Step::Row
            }
            (Step::Row, Answer::Shard(row)) => {
                return self.accept_row(row.as_ref(), (follows, fresh), state);
            }
            (step, _) => step,
        };
        Ok(Verdict::Continues(self))
    }

    fn note_older(&mut self, missing: std::fmt::Arguments<'_>) {
        self.fault.get_or_insert_with(|| {
            format!(
                "the log in the database is older than this replica: it lacks {missing}. Was a \
                 backup of MongoDB restored? Restore the newest state of MongoDB; if it is lost, \
                 restore a snapshot into an empty database, or empty the data directory"
            )
        });
    }

    fn accept_row(
        mut self,
        row: Option<&ShardRow>,
        (follows, fresh): (bool, i64),
        state: &mut impl Shard,
    ) -> Result<Verdict, ShardFault> {
        match judge_row(row, follows, fresh, state)? {
            Origins::Same => {}
            Origins::Create(log, cut) => return Ok(Verdict::Create(log, cut)),
            Origins::Foreign(text) => return Ok(Verdict::Foreign(text)),
        }
        // The row was read after the entry, so that the cut shows whether it was deleted.
        if self.lacks_last && row.is_some_and(|row| row.cut < self.applied) {
            let number = self.applied;
            self.note_older(format_args!("record {number}"));
        }
        if let Some(text) = self.fault.filter(|_| !is_on(Mutant::IgnoresOrigin)) {
            return Ok(Verdict::Foreign(text));
        }
        // After a copy, the replica remembers the last fence that it contains.
        if let (Some(origin), Some(last)) = (state.origin(), self.last)
            && origin.fence.is_none()
        {
            state.set_origin(Origin { fence: Some(last), ..origin })?;
        }
        Ok(Verdict::Same)
    }
}

/// Remembers a fence before the state passes it.
///
/// # Errors
/// The origin cannot be written.
pub(crate) fn note_fence(entry: &Entry, state: &mut impl Shard) -> Result<(), ShardFault> {
    match state.origin() {
        Some(origin) if entry.body == Body::Fence => {
            let fence = Some((entry.id.number, entry.nonce));
            state.set_origin(Origin { fence, ..origin })
        }
        _ => Ok(()),
    }
}
