//! The rows that a checkpoint writes: those that changed since the last one, as of its start.
//!
//! Must never know: the table of the rows, when a checkpoint starts.

use std::collections::BTreeMap;

use super::{SeriesStates, readings_row, row};
use crate::{
    model::{SeenTimes, SeriesId},
    store::encoding::lanes::{row_of, series_at},
};

/// The encoded form of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EncodedRow {
    pub(crate) row: u32,
    pub(crate) states: Vec<u8>,
    /// The seen times; empty when there are none.
    pub(crate) seen: Vec<u8>,
    /// The readings of histograms; `None` when the row never had any.
    pub(crate) histograms: Option<Vec<u8>>,
}

impl SeriesStates {
    #[inline]
    pub(super) fn mark(&mut self, series: SeriesId) {
        let row = row_of(series);
        if self.marked != Some(row) {
            self.mark_row(row);
        }
    }

    #[cold]
    pub(super) fn mark_row(&mut self, row: u32) {
        self.marked = Some(row);
        self.changed.insert(row);
        if self.frozen.contains(&row) && !self.images.contains_key(&row) {
            self.images.insert(row, self.encode(row));
        }
    }

    /// Freezes the rows that changed, for a checkpoint: a frozen row is copied before it changes.
    /// No other rows may be frozen.
    pub(crate) fn freeze(&mut self) {
        assert!(self.frozen.is_empty(), "one checkpoint at a time");
        self.marked = None;
        self.frozen = std::mem::take(&mut self.changed);
    }

    /// Returns up to `count` frozen rows from row `from` on, ascending.
    pub(crate) fn frozen_rows(&self, from: u32, count: usize) -> Vec<EncodedRow> {
        let rows = self.frozen.range(from..).take(count);
        rows.map(|row| self.images.get(row).cloned().unwrap_or_else(|| self.encode(*row))).collect()
    }

    /// Ends the freeze after the rows were stored. Returns the copies, which the caller drops.
    pub(crate) fn thaw(&mut self) -> BTreeMap<u32, EncodedRow> {
        self.frozen.clear();
        std::mem::take(&mut self.images)
    }

    pub(super) fn encode(&self, row: u32) -> EncodedRow {
        let range = self.range(row);
        let states = &self.states[range.clone()];
        let whole = self.idle.whole(row, states);
        let states = row::encode(whole.as_deref().unwrap_or(states));
        let mut seen = Vec::new();
        let count = self.seen.len();
        let times = &self.seen[range.start.min(count)..range.end.min(count)];
        if times.iter().any(|times| !times.is_empty()) {
            for times in times {
                times.to_bytes(&mut seen);
            }
        }
        let has_histograms = self.histogram_rows.contains(&row);
        let histograms = has_histograms.then(|| {
            let mut bytes = Vec::new();
            let ids = series_at(row, 0)..series_at(row + 1, 0);
            for (id, readings) in self.histograms.range(ids) {
                readings_row::put_readings(id.0 as usize - range.start, readings, &mut bytes);
            }
            bytes
        });
        EncodedRow { row, states, seen, histograms }
    }

    /// Returns the state of a series and its seen times, as bytes that do not depend on other
    /// series.
    pub(crate) fn bytes_of(&self, series: SeriesId) -> Vec<u8> {
        let (row, index) = (row_of(series), series.0 as usize);
        let range = self.range(row);
        let states = &self.states[range.clone()];
        let whole = self.idle.whole(row, states);
        let state = whole.as_deref().unwrap_or(states).get(index - range.start);
        let mut bytes = state.map_or(Vec::new(), |state| row::encode(std::slice::from_ref(state)));
        self.seen.get(index).unwrap_or(&SeenTimes::default()).to_bytes(&mut bytes);
        if let Some(readings) = self.histograms.get(&series) {
            readings_row::put_readings(index - range.start, readings, &mut bytes);
        }
        bytes
    }
}
