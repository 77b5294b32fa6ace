//! The migration of a data directory between an embedded daemon, which has a log of its own, and a
//! node of a cluster, whose log is elsewhere.
//!
//! The files of both are the same, except the log and two numbers of the journal. Checkpoints
//! empty the log first, so that the numbers alone are changed, in one transaction. Digests before
//! and after it must be equal. Must never know: where the other log is.

use std::{sync::Arc, time::Duration};

use super::{
    error::StoreError,
    file::{medium::Medium, names::JOURNAL_FILE},
    handle::Store,
    journal::{Journal, granularities::as_set},
    replica::{Replica, StoreDigest},
};
use crate::model::Moment;

/// The time limit for the closing of the files.
const CLOSED_WITHIN: Duration = Duration::from_secs(60);

/// The kind of a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreHome {
    /// An embedded daemon.
    Embedded,
    /// A node of a cluster.
    Cluster,
}

/// The result of a migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationReport {
    /// True if the directory had the kind before.
    pub was_done: bool,
    /// The last record in the directory.
    pub through: u64,
    /// The levels whose cells were compared.
    pub levels: Vec<String>,
}

/// Migrates a data directory that no process uses. A repetition continues after an interruption.
/// `through` is the last record of the cluster's log, which a replica must have on its disk before
/// it becomes embedded.
///
/// # Errors
/// When a file cannot be read or written, the store is empty, records are missing, or the store
/// differs afterwards: it then keeps its kind.
pub fn migrate(
    medium: &Arc<dyn Medium>,
    to: StoreHome,
    through: Option<u64>,
    now: Moment,
) -> Result<MigrationReport, StoreError> {
    let from = match to {
        StoreHome::Embedded => StoreHome::Cluster,
        StoreHome::Cluster => StoreHome::Embedded,
    };
    if home_of(medium)? == to {
        let (after, levels) = digest(medium, to, now)?;
        return Ok(MigrationReport { was_done: true, through: after.applied(), levels });
    }
    let (before, _) = digest(medium, from, now)?;
    if before.applied() == 0 {
        return Err(mismatch("it is empty: begin with an empty data directory"));
    }
    if from == StoreHome::Cluster {
        refuse_incomplete(before.applied(), through)?;
    }
    let set = |home| {
        let through = (home == StoreHome::Cluster).then(|| before.applied());
        Journal::open(medium)?.set_changes_through(through)
    };
    set(to)?;
    let compared = digest(medium, to, now).and_then(|(after, levels)| {
        let same = before.compare(&after);
        same.map_err(|difference| mismatch(&format!("after the migration, {difference}")))?;
        Ok(levels)
    });
    match compared {
        Ok(levels) => Ok(MigrationReport { was_done: false, through: before.applied(), levels }),
        Err(fault) => {
            set(from)?;
            Err(fault)
        }
    }
}

fn mismatch(problem: &str) -> StoreError {
    StoreError::Mismatch { file: JOURNAL_FILE.to_owned(), problem: problem.to_owned() }
}

/// Refuses a replica that lacks records of the log, which no other place would have.
fn refuse_incomplete(applied: u64, through: Option<u64>) -> Result<(), StoreError> {
    let problem = match through {
        Some(through) if through == applied => return Ok(()),
        Some(through) if through > applied => format!(
            "its disk has the records up to {applied}, and lacks {} to {through}: start it as a node \
             of its cluster, and stop it in order, after all other nodes and while it holds the \
             store",
            applied.saturating_add(1)
        ),
        Some(through) => format!(
            "its disk has the records up to {applied}, so that {through} is not the last one of the \
             log: stop all nodes, and read the number again"
        ),
        None => "the number of the last record of its log must be given".to_owned(),
    };
    Err(mismatch(&problem))
}

fn home_of(medium: &Arc<dyn Medium>) -> Result<StoreHome, StoreError> {
    let is_replica = Journal::open(medium)?.changes_through()?.is_some();
    Ok(if is_replica { StoreHome::Cluster } else { StoreHome::Embedded })
}

/// Returns the digest of a store without records in memory, and the names of its levels.
fn digest(
    medium: &Arc<dyn Medium>,
    home: StoreHome,
    now: Moment,
) -> Result<(StoreDigest, Vec<String>), StoreError> {
    let store = match home {
        StoreHome::Cluster => {
            let (store, replica) = Replica::open(medium.clone(), None, now.clock)?;
            if replica.is_behind_files() {
                return Err(mismatch(
                    "its last checkpoint was interrupted: start it as a node of its cluster, and stop \
                     it in order",
                ));
            }
            store
        }
        StoreHome::Embedded => {
            let journal = Journal::open(medium)?;
            let set = as_set(&journal.granularities()?, JOURNAL_FILE)?;
            drop(journal);
            let (store, _, _) = Store::open_with_rules(medium.clone(), set, None, now.clock)?;
            let held = store.inner.checkpointing.lock();
            store.empty_memory(now)?;
            drop(held);
            store
        }
    };
    let digest = store.digest(now.clock)?;
    let levels = store.granularities().iter().map(|level| level.name.clone()).collect();
    let closed = store.closed();
    drop(store);
    if !closed.wait(CLOSED_WITHIN) {
        return Err(mismatch("it is still in use"));
    }
    Ok((digest, levels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_must_have_exactly_the_records_of_its_log() {
        assert!(refuse_incomplete(7, Some(7)).is_ok());
        let text = |through| refuse_incomplete(7, through).unwrap_err().to_string();
        assert!(text(Some(9)).contains("lacks 8 to 9"), "{}", text(Some(9)));
        assert!(text(Some(6)).contains("6 is not the last one"), "{}", text(Some(6)));
        assert!(text(None).contains("must be given"), "{}", text(None));
    }
}
