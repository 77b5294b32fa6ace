//! Rows that a start reads, and the states that replace damaged rows.
//!
//! Must never know: the table of the rows, how damage is reported.

use super::{SeriesStates, readings_row, row};
use crate::{
    model::{Kind, SeenTimes, SeriesId, SeriesState, UnixMillis},
    store::encoding::lanes::{SERIES_PER_ROW, series_at},
};

impl SeriesStates {
    /// Restores a row of states; `None` when it is damaged.
    pub(crate) fn restore_states(&mut self, row: u32, bytes: &[u8]) -> Option<()> {
        let first = (row as usize).checked_mul(SERIES_PER_ROW)?;
        // A stored row may lack series that were added later.
        let states = self.states.get_mut(first..)?;
        let count = states.len().min(SERIES_PER_ROW);
        row::decode(bytes, &mut states[..count])
    }

    /// Restores the readings of histograms of a row; `None` when they are damaged.
    pub(crate) fn restore_histograms(&mut self, row: u32, bytes: &[u8]) -> Option<()> {
        self.histogram_rows.insert(row);
        for (lane, readings) in readings_row::decode(bytes)? {
            self.histogram_bytes += readings.bytes();
            let before = self.histograms.insert(series_at(row, lane), readings);
            self.histogram_bytes -= before.map_or(0, |before| before.bytes());
        }
        Some(())
    }

    /// Replaces a damaged row of readings of histograms: the series continue from their next
    /// readings.
    pub(crate) fn lose_histograms(&mut self, row: u32) {
        self.histogram_rows.insert(row);
        self.mark_row(row);
    }

    /// Replaces a damaged row of states. Its series count as sampled up to `latest`, and its
    /// counters have no readings.
    pub(crate) fn lose_states(&mut self, row: u32, latest: UnixMillis) {
        for index in self.range(row) {
            let times = self.seen.get(index).and_then(SeenTimes::latest);
            let state = &mut self.states[index];
            *state = SeriesState::restore(state.kind, times.unwrap_or(latest), None, None);
        }
        self.mark_row(row);
    }

    /// Replaces a damaged row of seen times. No time up to a series' latest sample counts as new.
    pub(crate) fn lose_seen(&mut self, row: u32) {
        let range = self.range(row);
        if range.end > self.seen.len() {
            self.seen.resize(range.end, SeenTimes::default());
        }
        for index in range {
            if !self.states[index].is_fresh() {
                self.seen[index] = SeenTimes::unknown_until(self.states[index].last_at);
            }
        }
        self.mark_row(row);
    }

    /// Restores a row of seen times; `None` when it is damaged.
    pub(crate) fn restore_seen(&mut self, row: u32, mut bytes: &[u8]) -> Option<()> {
        let first = (row as usize).checked_mul(SERIES_PER_ROW)?;
        let mut index = first;
        while !bytes.is_empty() {
            if index >= self.states.len() {
                return None;
            }
            if index >= self.seen.len() {
                self.seen.resize(index + 1, SeenTimes::default());
            }
            let seen = SeenTimes::from_bytes(&mut bytes)?;
            self.run_bytes = self.run_bytes + seen.run_bytes() - self.seen[index].run_bytes();
            self.seen[index] = seen;
            index += 1;
        }
        (index - first <= SERIES_PER_ROW).then_some(())
    }
}

/// Fuzz entry point: decodes bytes as rows.
pub(crate) fn fuzz_rows(bytes: &[u8]) {
    let mut states = SeriesStates::default();
    (0..SERIES_PER_ROW).for_each(|_| states.add(Kind::Counter));
    let restored = [states.restore_states(0, bytes), states.restore_seen(0, bytes)];
    if restored.iter().all(Option::is_none) {
        return;
    }
    states.observe(SeriesId(0), UnixMillis(5), 1.0, 0, UnixMillis(0));
    states.note_time(SeriesId(0), UnixMillis(5), 600_000);
    states.freeze();
    let rows = states.frozen_rows(0, 2);
    assert_eq!(rows.len(), 1);
    let mut read = SeriesStates::default();
    (0..SERIES_PER_ROW).for_each(|_| read.add(Kind::Counter));
    assert_eq!(read.restore_states(0, &rows[0].states), Some(()));
    assert_eq!(read.restore_seen(0, &rows[0].seen), Some(()));
    assert_eq!(read.encode(0), rows[0]);
}
