//! Loading of all series and their states at a start.
//!
//! Must never know: the receiver of the series.

use std::ops::ControlFlow;

use redb::{ReadableTable, TableError};

use super::{
    HISTOGRAMS, Journal, SEEN, SERIES, STATES, corrupt, fail,
    series_row::{self, ReadRow},
    without_check,
};
use crate::{
    model::{Kind, UnixMillis},
    store::{encoding::lanes::SERIES_PER_ROW, error::StoreError, states::SeriesStates},
};

/// The approximate number of bytes of series to pass on at a time.
const BYTES_AT_ONCE: usize = 1 << 20;
/// The approximate size of a series in the journal with its states, in bytes.
const SERIES_BYTES_MIN: u64 = 64;

impl Journal {
    /// Returns the approximate number of series, from the last ID; the size of the file limits the
    /// effect of a damaged ID.
    pub(crate) fn series_count(&self) -> Result<usize, StoreError> {
        let most = self.file.bytes()? / SERIES_BYTES_MIN;
        let txn = self.file.read()?;
        self.file.guard("read", || {
            let table = txn.open_table(SERIES).map_err(fail("read"))?;
            let last = table.last().map_err(fail("read"))?;
            Ok(last.map_or(0, |(id, _)| u64::from(id.value())).min(most) as usize)
        })
    }

    /// Reads all series in the order of their IDs, passes their bytes, in whole series for
    /// [`series_row::take`], to `out`, and restores their states. Both tables are read in turns, so
    /// that the receiver can work in parallel. Ends early when `out` breaks.
    pub(crate) fn load(
        &self,
        states: &mut SeriesStates,
        mut out: impl FnMut(Vec<u8>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut lost = Vec::new();
        let txn = self.file.read()?;
        let outcome = self.file.guard("read", || {
            let series = txn.open_table(SERIES).map_err(fail("read"))?;
            let remembered = txn.open_table(STATES).map_err(fail("read"))?;
            let mut remembered = remembered.iter().map_err(fail("read"))?.peekable();
            let mut restore = |states: &mut SeriesStates, rows_known: usize| {
                // An unreadable row is read now, so that it is reported.
                let is_known = |entry: &Result<(redb::AccessGuard<'_, u32>, _), _>| {
                    entry.as_ref().map_or(true, |(row, _)| (row.value() as usize) < rows_known)
                };
                while let Some(entry) = remembered.next_if(is_known) {
                    let (row, bytes) = entry.map_err(fail("read"))?;
                    let row = row.value();
                    let Some(bytes) = without_check(bytes.value(), &row) else {
                        lost.push(row);
                        continue;
                    };
                    states.restore_states(row, bytes).ok_or_else(|| {
                        corrupt(format!("row {row} of table states cannot be read"))
                    })?;
                }
                Ok::<_, StoreError>(())
            };
            let mut chunk = Vec::new();
            let mut rows = series.iter().map_err(fail("read"))?.peekable();
            while let Some(entry) = rows.next() {
                let (first, row) = entry.map_err(fail("read"))?;
                let first = first.value();
                let next = rows.peek().and_then(|next| Some(next.as_ref().ok()?.0.value()));
                let row = ReadRow::new(first, row.value(), next)
                    .filter(|row| add(states, first, &row.series).is_some())
                    .ok_or_else(|| corrupt(format!("series from {first} on cannot be read")))?;
                self.note_lost(&row.lost);
                chunk.extend_from_slice(&row.series);
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
        let mut lost_times = Vec::new();
        self.rows(SEEN, |row, bytes| {
            let Some(bytes) = bytes else {
                lost_times.push(row);
                return Some(None);
            };
            states.restore_seen(row, bytes).map(Some)
        })?;
        self.lose(states, &lost, &lost_times)?;
        self.load_histograms(states)
    }

    /// Restores the readings of histograms, if there are any.
    fn load_histograms(&self, states: &mut SeriesStates) -> Result<(), StoreError> {
        let txn = self.file.read()?;
        let has_table = self.file.guard("read", || match txn.open_table(HISTOGRAMS) {
            Err(TableError::TableDoesNotExist(_)) => Ok(false),
            table => table.map(|_| true).map_err(fail("read")),
        })?;
        drop(txn);
        if !has_table {
            return Ok(());
        }
        let mut lost = Vec::new();
        self.rows(HISTOGRAMS, |row, bytes| {
            let Some(bytes) = bytes else {
                lost.push(row);
                return Some(None);
            };
            states.restore_histograms(row, bytes).map(Some)
        })?;
        for row in lost {
            let first = u64::from(row) * SERIES_PER_ROW as u64;
            let last = first + SERIES_PER_ROW as u64 - 1;
            let consequence = format!(
                "series {first} to {last}: their histograms continue from their next readings"
            );
            self.damaged.note("histograms", &consequence);
            states.lose_histograms(row);
        }
        Ok(())
    }

    /// Reports lost series.
    fn note_lost(&self, series: &[u32]) {
        for id in series {
            let consequence = format!(
                "series {id}: its name is unknown: its samples are hidden, and its sender's next \
                 samples begin a new series; restore a snapshot if you need the hidden samples"
            );
            self.damaged.note("series", &consequence);
        }
    }

    /// Continues without damaged rows of states and of seen times, so that none of their samples
    /// counts twice.
    fn lose(
        &self,
        states: &mut SeriesStates,
        lost: &[u32],
        lost_times: &[u32],
    ) -> Result<(), StoreError> {
        let series = |row: u32| {
            let first = u64::from(row) * SERIES_PER_ROW as u64;
            format!("series {first} to {}", first + SERIES_PER_ROW as u64 - 1)
        };
        // No sample up to the last checkpoint is later than this time.
        let latest = match states.latest() {
            None if lost.is_empty() => UnixMillis(0),
            None => self.last_run()?.unwrap_or(UnixMillis(0)),
            Some(latest) => latest,
        };
        for row in lost {
            let consequence =
                format!("{}: their counters continue from their next readings", series(*row));
            self.damaged.note("states", &consequence);
            states.lose_states(*row, latest);
        }
        for row in lost_times {
            let consequence = format!(
                "{}: samples without batch numbers are refused unless they are newer than the \
                 latest sample of their series",
                series(*row)
            );
            self.damaged.note("seen", &consequence);
            states.lose_seen(*row);
        }
        Ok(())
    }
}

/// Adds empty states for the series of a row; `None` when the row is damaged.
fn add(states: &mut SeriesStates, first: u32, mut row: &[u8]) -> Option<()> {
    if first as usize != states.count() {
        return None;
    }
    while !row.is_empty() {
        // A lost series gets no further samples, so its kind does not matter.
        states.add(series_row::take(&mut row)?.map_or(Kind::Gauge, |series| series.kind));
    }
    Some(())
}
