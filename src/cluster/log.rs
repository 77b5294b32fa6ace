//! The log of a holder: the records of its appender go through the thread of the replica.
//!
//! Must never know: the content of records.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::shard::StoreShard;
use crate::{
    replication::{Refusal, Shard, runner::ReplicaHandle},
    store::{LogFault, RecordSink, StoreError},
};

/// The time limit for the confirmation of a record. Later appends of the same record only look
/// whether it was confirmed meanwhile.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(3);
/// The time limit for a record whose outcome is unknown.
const LOOK: Duration = Duration::from_millis(50);

/// The end of the log at which this node appends.
pub struct ReplicaLog {
    replica: Arc<ReplicaHandle<StoreShard>>,
    /// True while the outcome of the last record is unknown.
    is_unsure: bool,
}

/// The reason why the outcome of an append is unknown.
#[derive(Debug, thiserror::Error)]
#[error("MongoDB does not confirm records at present: {0}")]
struct NotConfirmed(String);

impl ReplicaLog {
    /// Creates the log of a replica that holds its shard.
    pub fn new(replica: Arc<ReplicaHandle<StoreShard>>) -> Self {
        Self { replica, is_unsure: false }
    }

    fn try_append(&self, number: u64, record: &[u8]) -> Result<(), LogFault> {
        let (bytes, next) = (record.to_vec(), Arc::new(AtomicU64::new(number)));
        let found_next = next.clone();
        let append = move |shard: &StoreShard| {
            // An earlier attempt may have confirmed the record.
            let following = shard.applied() + 1;
            found_next.store(following, Ordering::Relaxed);
            (following == number).then_some(bytes)
        };
        let refused = |refusal| match refusal {
            Refusal::NoHolder => LogFault::Fenced { number },
            Refusal::Busy => self.unknown(number),
            Refusal::TooLarge => LogFault::Store(StoreError::Mismatch {
                file: "the shared log".to_owned(),
                problem: refusal.to_string(),
            }),
        };
        let outcome = self.replica.append(Box::new(append)).map_err(refused)?;
        let limit = if self.is_unsure { LOOK } else { CONFIRMED_WITHIN };
        let Ok(outcome) = outcome.recv_timeout(limit) else {
            return Err(self.unknown(number));
        };
        outcome.map_err(refused)?;
        match next.load(Ordering::Relaxed) {
            next if next < number => Err(LogFault::OutOfOrder { number, next }),
            _ => Ok(()),
        }
    }

    fn unknown(&self, number: u64) -> LogFault {
        let fault = self.replica.status().last_fault;
        let cause = NotConfirmed(fault.unwrap_or_else(|| "it does not answer".to_owned()));
        LogFault::Unknown { number, cause: Box::new(cause) }
    }
}

impl fmt::Debug for ReplicaLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplicaLog")
    }
}

impl RecordSink for ReplicaLog {
    fn append(&mut self, number: u64, record: &[u8]) -> Result<(), LogFault> {
        let outcome = self.try_append(number, record);
        self.is_unsure = matches!(outcome, Err(LogFault::Unknown { .. }));
        outcome
    }

    fn give_up(&mut self) {
        let row = self.replica.status().row.unwrap_or_default();
        let mut members = row.members.keys();
        if !members.any(|node| row.holder.as_ref() != Some(node) && row.has_cut(node)) {
            tracing::error!(
                "this node cannot store a change, and no other node could hold the store"
            );
            return;
        }
        tracing::error!("this node cannot store a change: it hands the store over");
        if let Err(refusal) = self.replica.hand_over() {
            tracing::debug!(%refusal, "the replica has stopped");
        }
    }
}
