//! The states of all series between samples, in the rows in which they are stored.
//!
//! Must never know: the table of the rows.

mod idle;
mod readings_row;
mod row;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{
    model::{
        Histogram, HistogramReadings, Kind, ObservedCell, SeenTimes, SeriesId, SeriesState,
        TimeVerdict, UnixMillis,
        counter::{Reading, RememberedReadings},
        histogram_readings::HistogramIncrease,
    },
    store::encoding::lanes::{SERIES_PER_ROW, row_of, series_at},
};
use idle::IdleCounters;

/// The states of all series, and the seen times of the series that are deduplicated by time.
#[derive(Debug, Default)]
pub(crate) struct SeriesStates {
    states: Vec<SeriesState>,
    /// The number of states of counters.
    counters: usize,
    /// The packed readings of idle counters, which are removed from their states.
    idle: IdleCounters,
    /// The accepted times of each series, up to the last series that is deduplicated by time.
    seen: Vec<SeenTimes>,
    /// The remembered readings of counters that are histograms.
    histograms: BTreeMap<SeriesId, HistogramReadings>,
    /// Rows of series that have, or had, such readings.
    histogram_rows: BTreeSet<u32>,
    /// The approximate bytes of these readings.
    histogram_bytes: usize,
    /// The bytes of the seen times on the heap.
    run_bytes: usize,
    /// Rows that the next checkpoint must write.
    changed: BTreeSet<u32>,
    /// Rows that the running checkpoint must write, as of its start.
    frozen: BTreeSet<u32>,
    /// Copies of the frozen rows that changed since then, from before the change.
    images: BTreeMap<u32, EncodedRow>,
    /// The row that was marked last.
    marked: Option<u32>,
}

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
    /// Reserves memory for `count` more series.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.states.reserve_exact(count);
    }

    /// Returns the number of series.
    pub(crate) fn count(&self) -> usize {
        self.states.len()
    }

    /// Adds the state of a new series, whose ID is the next number.
    pub(crate) fn add(&mut self, kind: Kind) {
        let state = SeriesState::new(kind);
        self.counters += usize::from(state.kind == Kind::Counter);
        self.states.push(state);
    }

    /// Forgets the state of a series; the next checkpoint stores the empty state.
    pub(crate) fn forget(&mut self, series: SeriesId) {
        self.mark(series);
        self.wake(series);
        let index = series.0 as usize;
        let state = &mut self.states[index];
        self.counters -= usize::from(state.kind == Kind::Counter);
        *state = SeriesState::new(state.kind);
        if let Some(seen) = self.seen.get_mut(index) {
            self.run_bytes -= std::mem::take(seen).run_bytes();
        }
        if let Some(readings) = self.histograms.remove(&series) {
            self.histogram_bytes -= readings.bytes();
        }
    }

    /// Returns the approximate bytes of the states with the readings of histograms, of packed
    /// states, and of seen times.
    pub(crate) fn bytes(&self) -> [usize; 3] {
        let awake = self.counters.saturating_sub(self.idle.series());
        let states = size_of_val(&self.states[..]) + awake * size_of::<RememberedReadings>();
        let states = states + self.histogram_bytes;
        [states, self.idle.bytes(), size_of_val(&self.seen[..]) + self.run_bytes]
    }

    /// Returns the number of counters that are packed.
    pub(crate) fn idle_series(&self) -> usize {
        self.idle.series()
    }

    /// Packs the counters of some rows that have had no sample since `before`; their next sample
    /// unpacks them. Returns false when a row does not exist. The state of each series remains the
    /// same.
    pub(crate) fn pack_idle(&mut self, rows: Range<u32>, before: UnixMillis) -> bool {
        for row in rows {
            let range = self.range(row);
            if range.is_empty() {
                return false;
            }
            self.idle.take(row, &mut self.states[range], before);
        }
        true
    }

    /// Unpacks the counters of a series' row if the series itself is packed.
    #[inline]
    fn wake(&mut self, series: SeriesId) {
        let state = &self.states[series.0 as usize];
        if state.kind == Kind::Counter && state.counter().is_none() {
            self.wake_row(row_of(series));
        }
    }

    #[cold]
    fn wake_row(&mut self, row: u32) {
        let range = self.range(row);
        self.idle.restore(row, &mut self.states[range]);
    }

    /// Returns the indexes of the series of a row.
    fn range(&self, row: u32) -> Range<usize> {
        let from = (row as usize * SERIES_PER_ROW).min(self.states.len());
        from..(from + SERIES_PER_ROW).min(self.states.len())
    }

    /// Returns the state of a series.
    pub(crate) fn get(&self, series: SeriesId) -> Option<&SeriesState> {
        self.states.get(series.0 as usize)
    }

    /// Returns the first and the latest reading of a counter; `None` when no reading is remembered.
    pub(crate) fn ends(&mut self, series: SeriesId) -> Option<(Reading, Reading)> {
        self.wake(series);
        let mut readings = self.get(series)?.counter()?.in_order();
        let first = readings.next()?;
        Some((first.reading, readings.last().unwrap_or(first).reading))
    }

    /// Returns the time of the latest sample of all series; `None` when there never was one.
    pub(crate) fn latest(&self) -> Option<UnixMillis> {
        self.states.iter().filter(|state| !state.is_fresh()).map(|state| state.last_at).max()
    }

    /// Applies one sample; see [`SeriesState::observe`].
    #[inline]
    pub(crate) fn observe(
        &mut self,
        series: SeriesId,
        at: UnixMillis,
        value: f64,
        start: i64,
        slot_start: UnixMillis,
    ) -> ObservedCell {
        self.mark(series);
        self.wake(series);
        let state = &mut self.states[series.0 as usize];
        // The readings of the counter were lost: its growth so far may have been counted already.
        let is_lost = state.counter().is_none() && state.kind == Kind::Counter && !state.is_fresh();
        state.observe(at, value, if is_lost { 0 } else { start }, slot_start)
    }

    /// Applies the histogram of a sample after [`Self::observe`]; returns its increase.
    pub(crate) fn observe_histogram(
        &mut self,
        series: SeriesId,
        (at, start): (UnixMillis, i64),
        histogram: &Histogram,
    ) -> HistogramIncrease {
        let counts_up = self.get(series).is_some_and(|state| state.kind == Kind::Counter);
        if !counts_up {
            return HistogramIncrease { increase: histogram.clone(), correction: None };
        }
        self.histogram_rows.insert(row_of(series));
        // The readings were lost when the counts have earlier ones: the growth so far may have been
        // counted already.
        let is_lost = !self.histograms.contains_key(&series)
            && self.ends(series).is_some_and(|(first, last)| first.at != at.0 || last.at != at.0);
        let start = if is_lost { 0 } else { start };
        let readings = self.histograms.entry(series).or_default();
        let before = readings.bytes();
        let increase = readings.observe(at, start, histogram);
        self.histogram_bytes = self.histogram_bytes + readings.bytes() - before;
        increase
    }

    /// Notes that the samples of a series in a range of time were erased.
    pub(crate) fn note_erased(&mut self, series: SeriesId, range: &Range<i64>) {
        if self.states.get(series.0 as usize).is_some_and(|state| state.kind == Kind::Counter) {
            self.mark(series);
            self.wake(series);
            self.states[series.0 as usize].note_erased(range);
            if let Some(readings) = self.histograms.get_mut(&series) {
                let before = readings.bytes();
                readings.note_erased(range);
                self.histogram_bytes = self.histogram_bytes + readings.bytes() - before;
            }
        }
    }

    /// Notes that the sender ended a series.
    pub(crate) fn end(&mut self, series: SeriesId, at: UnixMillis) {
        self.mark(series);
        self.states[series.0 as usize].end(at);
    }

    /// Decides whether a time is new, and notes it; see [`SeenTimes::note`].
    pub(crate) fn note_time(
        &mut self,
        series: SeriesId,
        at: UnixMillis,
        window_ms: i64,
    ) -> TimeVerdict {
        self.mark(series);
        let index = series.0 as usize;
        if index >= self.seen.len() {
            self.seen.resize(index + 1, SeenTimes::default());
        }
        let seen = &mut self.seen[index];
        let before = seen.run_bytes();
        let verdict = seen.note(at, window_ms);
        self.run_bytes = self.run_bytes + seen.run_bytes() - before;
        verdict
    }

    #[inline]
    fn mark(&mut self, series: SeriesId) {
        let row = row_of(series);
        if self.marked != Some(row) {
            self.mark_row(row);
        }
    }

    #[cold]
    fn mark_row(&mut self, row: u32) {
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

    fn encode(&self, row: u32) -> EncodedRow {
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

#[cfg(test)]
mod tests;
