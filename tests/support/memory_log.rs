//! A shared log in memory, whose appends have unknown outcomes on demand.

use std::{
    collections::BTreeMap,
    io,
    ops::{Bound, ControlFlow},
    sync::{Arc, Mutex, MutexGuard},
};

use granary::store::{LogFault, RecordLog, RecordSink, RecordVisitor};

/// The fate of the next append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Fate {
    /// The record is in the log, and the answer arrives.
    #[default]
    Known,
    /// The record is in the log, but the answer is lost.
    AnswerLost,
    /// Neither the record nor the answer arrives.
    RecordLost,
}

#[derive(Debug, Default)]
struct State {
    /// The records by number; `None` is a fence.
    records: BTreeMap<u64, Option<Vec<u8>>>,
    cut: u64,
    fate: Fate,
    given_up: bool,
}

/// A log in memory. Clones share the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryLog(Arc<Mutex<State>>);

impl MemoryLog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Sets the fate of the next append.
    pub(crate) fn set_fate(&self, fate: Fate) {
        self.state().fate = fate;
    }

    /// Returns the number of the last record.
    pub(crate) fn last(&self) -> u64 {
        let state = self.state();
        state.records.last_key_value().map_or(state.cut, |(number, _)| *number)
    }

    /// Returns a record; `None` for a fence.
    pub(crate) fn record(&self, number: u64) -> Option<Vec<u8>> {
        self.state().records.get(&number).cloned().flatten()
    }

    /// Returns true while the log still has its first record.
    pub(crate) fn is_whole(&self) -> bool {
        self.state().cut == 0
    }

    /// Returns true if a writer could not apply what it appended.
    pub(crate) fn is_given_up(&self) -> bool {
        self.state().given_up
    }

    /// Fences earlier writers: the next number passes without a record.
    pub(crate) fn fence(&self) {
        let next = self.last() + 1;
        self.state().records.insert(next, None);
    }
}

impl RecordSink for MemoryLog {
    fn append(&mut self, number: u64, record: &[u8]) -> Result<(), LogFault> {
        let mut state = self.state();
        let next = state.records.last_key_value().map_or(state.cut, |(number, _)| *number) + 1;
        let known = state.records.get(&number);
        if let Some(None) = known {
            return Err(LogFault::Fenced { number });
        }
        let is_again = known.is_some_and(|known| known.as_deref() == Some(record));
        if number != next && !is_again {
            return Err(LogFault::OutOfOrder { number, next });
        }
        let fate = std::mem::take(&mut state.fate);
        if fate != Fate::RecordLost {
            state.records.insert(number, Some(record.to_vec()));
        }
        if fate == Fate::Known {
            return Ok(());
        }
        let cause = io::Error::from(io::ErrorKind::TimedOut).into();
        Err(LogFault::Unknown { number, cause })
    }

    fn give_up(&mut self) {
        self.state().given_up = true;
    }
}

impl RecordLog for MemoryLog {
    fn read_after(&mut self, after: u64, visit: &mut RecordVisitor<'_>) -> Result<(), LogFault> {
        let records = {
            let state = self.state();
            if after < state.cut {
                return Err(LogFault::Cut { cut: state.cut });
            }
            let range = (Bound::Excluded(after), Bound::Unbounded);
            let later = state.records.range(range);
            later.map(|(number, record)| (*number, record.clone())).collect::<Vec<_>>()
        };
        for (number, record) in records {
            if visit(number, record.as_deref()) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn cut(&mut self, through: u64) -> Result<(), LogFault> {
        let state = &mut *self.state();
        let through = through.min(state.records.last_key_value().map_or(state.cut, |last| *last.0));
        state.cut = state.cut.max(through);
        state.records = state.records.split_off(&(state.cut + 1));
        Ok(())
    }
}
