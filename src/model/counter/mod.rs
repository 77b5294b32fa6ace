//! Cells of samples: the contribution of each kind, and the state that counters need.
//!
//! Granary turns a counter into increases at ingest: each reading adds the growth since the
//! previous reading in time to the slot of its own time. The first reading adds nothing, with one
//! exception: it adds its whole value if the counter began at most [`START_COUNTS_MS`] before the
//! reading and not before the time that the caller allows, because the sender would have read an
//! older counter earlier. When a reading arrives late, the growth over its gap has already been
//! credited to the next reading, and the late reading takes its part from that reading. If several
//! readings have the same time, the largest counts.
//!
//! Guarantee: in every order of arrival, even with resets and starts, these readings produce the
//! same increases as in order of time:
//! - Up to [`READINGS_MAX`] readings.
//! - A reading with fewer than [`LATEST_KEPT`] newer readings, after any number of readings.
//! - A reading inside a remembered gap (longer than one and a half intervals), and readings that
//!   fill such a gap in order. The two gaps that are widest in proportion to the time since they
//!   began are remembered. Therefore blocks that overtake each other are corrected, and so is
//!   history that arrives after live readings, because the first reading is always remembered.
//!
//! Every other late reading adds nothing, because the readings around it already include its part:
//! without resets the total is exact in every order; only the split between two slots keeps its
//! earlier value. A reset that only such a reading shows is missed.
//!
//! When a late reading has a larger value than the latest reading, and the counter began before
//! both, the sender's clock was set back: the counter continues from the latest reading, and
//! earlier readings are final. When a late reading has a larger value than the next reading, and
//! the counter began before both, the late reading adds nothing, because the decrease after it is
//! not a reset.
//!
//! The smallest and largest rates of a slot are rates between readings that were neighbours when
//! one of them arrived. They include all rates between final neighbours, and rates over gaps that
//! were filled later; without a reset, a rate over a gap is between the rates of its parts.

mod reading;
mod remembered;
pub mod spread;
#[cfg(test)]
mod tests;
mod times;

pub use reading::{Reading, START_COUNTS_MS, start_without_count};
pub use remembered::{LATEST_KEPT, RememberedReading, RememberedReadings};
pub use times::READINGS_MAX;

pub use granary_protocol::{STALE_MARKER, is_stale_marker};

use std::ops::Range;

use super::{Cell, Kind, UnixMillis};

/// The state of a series between samples.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesState {
    /// The kind of the values; the kind of the counts of histograms.
    pub kind: Kind,
    /// The time of the latest sample; [`UnixMillis::EARLIEST`] before the first sample.
    pub last_at: UnixMillis,
    /// The time at which the sender ended the series; [`UnixMillis::EARLIEST`] if the sender did
    /// not end it.
    ended_at: UnixMillis,
    /// The readings of a counter, if it has any.
    counter: Option<Box<RememberedReadings>>,
}

/// The changes that one sample makes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObservedCell {
    /// The sample's cell, relative to the start of its slot.
    pub cell: Cell,
    /// A late reading's correction in the slot of the reading after it.
    pub correction: Option<Correction>,
}

/// The change that a late reading makes to the reading after it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correction {
    /// The time of the corrected reading.
    pub at: UnixMillis,
    /// The change of the corrected reading's increase.
    pub increase: f64,
    /// The rate per second from the late reading to the corrected reading.
    pub rate: Option<f64>,
}

impl SeriesState {
    /// Returns the state of a series without samples.
    pub fn new(kind: Kind) -> Self {
        let (never, kind) = (UnixMillis::EARLIEST, kind.of_counts());
        Self { kind, last_at: never, ended_at: never, counter: None }
    }

    /// Returns a state with stored values.
    pub fn restore(
        kind: Kind,
        last_at: UnixMillis,
        ended_at: Option<UnixMillis>,
        counter: Option<RememberedReadings>,
    ) -> Self {
        let ended_at = ended_at.unwrap_or(UnixMillis::EARLIEST);
        Self { kind, last_at, ended_at, counter: counter.map(Box::new) }
    }

    /// Returns the readings of a counter; `None` before the first.
    pub fn counter(&self) -> Option<&RememberedReadings> {
        self.counter.as_deref()
    }

    /// Moves the counter's readings into the returned state; this state keeps everything else.
    pub fn take_counter(&mut self) -> Self {
        let rest = Self::restore(self.kind, self.last_at, Some(self.ended_at), None);
        std::mem::replace(self, rest)
    }

    /// Restores the readings that `take_counter` moved out; the latest sample and the end that were
    /// recorded in the meantime stay.
    pub fn put_counter(&mut self, taken: Self) {
        self.counter = taken.counter;
    }

    /// Returns true when the series never had a sample.
    pub fn is_fresh(&self) -> bool {
        self.last_at == UnixMillis::EARLIEST
    }

    /// Returns the time at which the sender ended the series, if it did.
    pub fn ended_at(&self) -> Option<UnixMillis> {
        (self.ended_at > UnixMillis::EARLIEST && self.ended_at >= self.last_at)
            .then_some(self.ended_at)
    }

    /// Adds one sample. `start` is the start of a counter, 0 if unknown; a counter's first reading
    /// counts whole if the start is at most [`START_COUNTS_MS`] earlier, unless
    /// [`start_without_count`] made the start.
    pub fn observe(
        &mut self,
        at: UnixMillis,
        value: f64,
        start: i64,
        slot_start: UnixMillis,
    ) -> ObservedCell {
        let offset = (at.0 - slot_start.0) as u32;
        self.last_at = self.last_at.max(at);
        match self.kind {
            Kind::Counter => {
                let reading = Reading::new(at.0, value, start);
                let Some(counter) = &mut self.counter else {
                    self.counter = Some(Box::new(RememberedReadings::first(reading)));
                    let (increase, rate) = (reading.increase_since(None), reading.rate_since(None));
                    let cell = Cell::reading(offset, value, increase, rate);
                    return ObservedCell { cell, correction: None };
                };
                if let Some((increase, rate)) = counter.append(&reading) {
                    let cell = Cell::reading(offset, value, increase, Some(rate));
                    return ObservedCell { cell, correction: None };
                }
                let contribution = counter.insert(reading);
                let cell = Cell::reading(offset, value, contribution.increase, contribution.rate);
                ObservedCell { cell, correction: contribution.correction }
            }
            Kind::Gauge
            | Kind::Delta
            | Kind::Histogram
            | Kind::GaugeHistogram
            | Kind::DeltaHistogram => {
                ObservedCell { cell: Cell::single(offset, value), correction: None }
            }
        }
    }

    /// Notes that the samples of a range of time were erased. The readings of a counter stay known:
    /// the growth within the range does not reappear in the next reading.
    pub fn note_erased(&mut self, range: &Range<i64>) {
        if let Some(counter) = &mut self.counter {
            counter.note_erased(range);
        }
    }

    /// Marks the series as ended at a time. Earlier samples may still arrive, in any order; a later
    /// sample begins the series again.
    pub fn end(&mut self, at: UnixMillis) {
        self.ended_at = self.ended_at.max(at);
    }
}
