//! What a start reads of the series: all of them, and beside it what is remembered of each.
//!
//! Must never know: who takes in the series.

use std::ops::ControlFlow;

use super::{Journal, SEEN, SERIES, STATES, corrupt, fail, series_row};
use crate::store::{catalog::series_states::SeriesStates, error::StoreError, rows::SERIES_PER_ROW};
use redb::ReadableTable;

/// Bytes of series that are handed out at once, about.
const BYTES_AT_ONCE: usize = 1 << 20;
/// Bytes that a series takes in the journal, about, with all that is written for it.
const SERIES_BYTES_MIN: u64 = 64;

impl Journal {
    /// About how many series there are, by the last one's id; a damaged one cannot make it large.
    pub(crate) fn series_count(&self) -> Result<usize, StoreError> {
        let most = self.file.bytes()? / SERIES_BYTES_MIN;
        let txn = self.file.read()?;
        self.file.guard("read", || {
            let table = txn.open_table(SERIES).map_err(fail("read"))?;
            let last = table.last().map_err(fail("read"))?;
            Ok(last.map_or(0, |(id, _)| u64::from(id.value())).min(most) as usize)
        })
    }

    /// Reads all series in the order of their ids and hands out their bytes, whole ones, as
    /// [`series_row::take`] takes them; puts back what is remembered of each. Both tables are read
    /// by turns, so that who takes in the series works meanwhile. Ends early when he wants no more.
    pub(crate) fn load(
        &self,
        states: &mut SeriesStates,
        mut out: impl FnMut(Vec<u8>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let txn = self.file.read()?;
        let outcome = self.file.guard("read", || {
            let series = txn.open_table(SERIES).map_err(fail("read"))?;
            let remembered = txn.open_table(STATES).map_err(fail("read"))?;
            let mut remembered = remembered.iter().map_err(fail("read"))?.peekable();
            let mut restore = |states: &mut SeriesStates, rows_known: usize| {
                // What cannot be read is taken, too, and told.
                let is_known = |entry: &Result<(redb::AccessGuard<'_, u32>, _), _>| {
                    entry.as_ref().map_or(true, |(row, _)| (row.value() as usize) < rows_known)
                };
                while let Some(entry) = remembered.next_if(is_known) {
                    let (row, bytes) = entry.map_err(fail("read"))?;
                    states.restore_states(row.value(), bytes.value()).ok_or_else(|| {
                        corrupt(format!("row {} of table states cannot be read", row.value()))
                    })?;
                }
                Ok::<_, StoreError>(())
            };
            let mut chunk = Vec::new();
            for entry in series.iter().map_err(fail("read"))? {
                let (first, row) = entry.map_err(fail("read"))?;
                let first = first.value();
                add(states, first, row.value())
                    .ok_or_else(|| corrupt(format!("series from {first} on cannot be read")))?;
                chunk.extend_from_slice(row.value());
                if chunk.len() >= BYTES_AT_ONCE {
                    if out(std::mem::take(&mut chunk)).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                    restore(states, states.count() / SERIES_PER_ROW)?;
                }
            }
            if out(chunk).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            restore(states, usize::MAX).map(ControlFlow::Continue)
        })?;
        if outcome.is_break() {
            return Ok(());
        }
        self.rows(SEEN, |_, row, bytes| states.restore_seen(row, bytes))?;
        Ok(())
    }
}

/// Makes room for the states of a row's series; `None` when it is damaged.
fn add(states: &mut SeriesStates, first: u32, mut row: &[u8]) -> Option<()> {
    if first as usize != states.count() {
        return None;
    }
    while !row.is_empty() {
        states.add(series_row::take(&mut row)?.kind);
    }
    Some(())
}
