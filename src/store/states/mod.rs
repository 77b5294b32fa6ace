//! The states of all series between samples, in the rows in which they are stored.
//!
//! Must never know: the table of the rows.

mod checkpointing;
mod idle;
mod readings_row;
mod restoring;
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
    store::encoding::lanes::{SERIES_PER_ROW, row_of},
};
pub(crate) use checkpointing::EncodedRow;
use idle::IdleCounters;
pub(crate) use restoring::fuzz_rows;

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
}

#[cfg(test)]
mod tests;
