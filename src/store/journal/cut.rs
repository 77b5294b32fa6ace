//! The traces of a finished checkpoint in the journal: states and senders as of its last record, in
//! parts, then the number of that record.
//!
//! Rows of states are stored in order, and the journal says up to which row they are as of which
//! record: after a crash in between, a replay leaves those rows out up to that record, whose cells
//! are in the head and in documents by then. To mark a sender's number twice is to mark it once.
//! Must never know: what checkpoints write before.

use std::sync::Arc;

use redb::WriteTransaction;

use super::{
    Journal, LAST_RUN_KEY, META, SEEN, SENDERS, STATES, STATES_ROWS_KEY, STATES_THROUGH_KEY,
    THROUGH_KEY, fail,
    in_head::{self, InHead},
    set_number, with_check,
};
use crate::{
    model::{SenderWindow, UnixMillis},
    store::{catalog::series_states::EncodedRow, error::StoreError, file::version::VERSION_KEY},
};

/// A part of what a checkpoint leaves.
#[derive(Debug)]
pub(crate) enum CutPart {
    /// Rows of states, and up to which row, exclusive, they are all as of the record `through`.
    States { through: u64, rows: Vec<EncodedRow>, end: u32 },
    /// Senders' windows; nothing of those that are forgotten.
    Senders(Vec<(Arc<str>, Option<SenderWindow>)>),
    /// The end of a cut: the records up to `through` are not needed any more. `in_head` are the
    /// slots that the head has cells of, `lost` those that were lost with heads.
    End { through: u64, now: UnixMillis, in_head: Vec<InHead>, lost: Vec<InHead> },
}

impl Journal {
    /// Stores a part durably.
    pub(crate) fn cut(&self, part: &CutPart) -> Result<(), StoreError> {
        self.file.transact(OPERATION, |txn| part.store(txn, self.medium.format()))
    }
}

const OPERATION: &str = "cut the journal";

impl CutPart {
    pub(super) fn store(&self, txn: &WriteTransaction, format: u64) -> Result<(), StoreError> {
        let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
        let mut set = |key, value| set_number(&mut meta, key, value).map_err(fail(OPERATION));
        match self {
            Self::States { through, rows, end } => {
                let mut states = txn.open_table(STATES).map_err(fail(OPERATION))?;
                let mut seen = txn.open_table(SEEN).map_err(fail(OPERATION))?;
                for EncodedRow { row, states: encoded, seen: times } in rows {
                    let encoded = with_check(encoded, row);
                    states.insert(row, &*encoded).map_err(fail(OPERATION))?;
                    match times.as_slice() {
                        [] => seen.remove(row),
                        times => seen.insert(row, &*with_check(times, row)),
                    }
                    .map_err(fail(OPERATION))?;
                }
                set(STATES_THROUGH_KEY, *through)?;
                set(STATES_ROWS_KEY, u64::from(*end))
            }
            Self::Senders(windows) => {
                let mut senders = txn.open_table(SENDERS).map_err(fail(OPERATION))?;
                for (sender, window) in windows {
                    match window {
                        Some(window) => {
                            let row = with_check(&window.to_bytes(), &&**sender);
                            senders.insert(&**sender, &*row)
                        }
                        None => senders.remove(&**sender),
                    }
                    .map_err(fail(OPERATION))?;
                }
                Ok(())
            }
            Self::End { through, now, in_head, lost } => {
                in_head::store(txn, in_head, OPERATION)?;
                in_head::store_lost(txn, lost, OPERATION)?;
                // Should it be damaged, it is known by now.
                set(VERSION_KEY, format)?;
                set(THROUGH_KEY, *through)?;
                set(LAST_RUN_KEY, now.0.max(0) as u64)
            }
        }
    }
}
