//! The cut: the end of a checkpoint in the journal. It stores states and senders as of the
//! checkpoint's last record, in parts, then the number of that record.
//!
//! Rows of states are stored in order. With each part, the journal stores the row up to which
//! states are stored, and the number of the record. After a crash between two parts, a replay skips
//! the series of these rows up to that record, because their cells are already in the head and in
//! documents. A replay may mark a sender's number twice, which is harmless. Must never know: the
//! earlier steps of a checkpoint.

use std::sync::Arc;

use redb::WriteTransaction;

use super::{
    HISTOGRAMS, Journal, LAST_RUN_KEY, META, RECORD_TIME_KEY, SEEN, SENDERS, STATES,
    STATES_ROWS_KEY, STATES_THROUGH_KEY, THROUGH_KEY,
    erasures::ERASURES,
    fail,
    in_head::{self, InHead},
    set_number, with_check,
};
use crate::{
    model::{SenderWindow, UnixMillis},
    store::{error::StoreError, file::version::VERSION_KEY, states::EncodedRow},
};

/// A part of the states at the end of a checkpoint.
#[derive(Debug)]
pub(crate) enum CutPart {
    /// Rows of states; all rows below `end` are then as of the record `through`.
    States { through: u64, rows: Vec<EncodedRow>, end: u32 },
    /// Windows of senders; `None` for removed senders.
    Senders(Vec<(Arc<str>, Option<SenderWindow>)>),
    /// The last part: the records up to `through` are no longer needed. `in_head` are the slots
    /// whose cells are in the head, `lost` the slots that were lost with heads. The states contain
    /// the effect of an erasure, so its row is removed. `record_time` is the latest time of a record
    /// of a replica.
    End {
        through: u64,
        now: UnixMillis,
        record_time: Option<UnixMillis>,
        in_head: Vec<InHead>,
        lost: Vec<InHead>,
    },
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
                for EncodedRow { row, states: encoded, seen: times, histograms } in rows {
                    let encoded = with_check(encoded, row);
                    states.insert(row, &*encoded).map_err(fail(OPERATION))?;
                    match times.as_slice() {
                        [] => seen.remove(row),
                        times => seen.insert(row, &*with_check(times, row)),
                    }
                    .map_err(fail(OPERATION))?;
                    if let Some(readings) = histograms {
                        store_histograms(txn, *row, readings)?;
                    }
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
            Self::End { through, now, record_time, in_head, lost } => {
                in_head::store(txn, in_head, OPERATION)?;
                in_head::store_lost(txn, lost, OPERATION)?;
                txn.delete_table(ERASURES).map_err(fail(OPERATION))?;
                // The start has already reported damage of the previous number.
                set(VERSION_KEY, format)?;
                set(THROUGH_KEY, *through)?;
                if let Some(time) = record_time {
                    set(RECORD_TIME_KEY, time.0.max(0) as u64)?;
                }
                set(LAST_RUN_KEY, now.0.max(0) as u64)
            }
        }
    }
}

/// Stores the readings of histograms of a row.
fn store_histograms(txn: &WriteTransaction, row: u32, readings: &[u8]) -> Result<(), StoreError> {
    let mut table = txn.open_table(HISTOGRAMS).map_err(fail(OPERATION))?;
    match readings {
        [] => table.remove(row),
        readings => table.insert(row, &*with_check(readings, &row)),
    }
    .map_err(fail(OPERATION))?;
    Ok(())
}
