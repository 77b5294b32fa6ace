//! From samples to cells: what each kind contributes, and what a counter must remember.
//!
//! A counter becomes increases when it is accepted: each reading adds what was counted since the
//! reading before it in time, to the slot of its own time. The first one adds nothing, or its whole
//! value when its counter began within [`START_COUNTS_MS`] before it, and since the time that the
//! caller gives: the sender would have read it before, had it been there. Where readings come later
//! than their turn, what was counted over the gap is first given to the reading behind it, and a
//! late reading takes its part from there. Of readings at one time the largest counts.
//!
//! What is promised, with resets and starts, whatever the order of arrival:
//! - Of up to [`READINGS_MAX`] readings, every increase is as if they had come in order.
//! - So is it for a reading than which fewer than [`LATEST_KEPT`] are newer, however many there
//!   were.
//! - And for a reading that falls into a gap, more than one and a half intervals wide, that is
//!   remembered, and for those that fill the gap in order: the two gaps are that are widest by
//!   their part of the time since they began. So blocks that overtake each other are put right, and
//!   history that comes behind live readings, as the first reading is never forgotten.
//!
//! Any other late reading adds nothing, as the readings around it have counted its part already:
//! without resets the total is exact in every order, only its split between two slots is as it was
//! before. A reset that is seen by such a reading alone is not known.
//!
//! A late reading with a higher value than the latest one, of a counter that had begun before both,
//! says that the sender's clock was set back: the counter goes on from the latest reading, and what
//! was read before the late one is settled. A late reading whose value is higher than that of the
//! next one, of a counter that had begun before both, adds nothing: that is no reset.
//!
//! Smallest and largest rate are of readings that were neighbours when one of them came. So they
//! hold all rates between those that are neighbours in the end, and besides those over gaps that
//! were filled later; without a reset in it, such a rate lies between those of its parts.

mod reading;
mod remembered;
pub mod spread;
#[cfg(test)]
mod tests;
mod times;

pub use reading::{Reading, START_COUNTS_MS};
pub use remembered::{Kept, LATEST_KEPT, Remembered};
pub use times::READINGS_MAX;

pub use granary_protocol::{STALE_MARKER, is_stale_marker};

use super::{Cell, Kind, UnixMillis};

/// What is remembered of a series between its samples.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesState {
    /// How the series' values are to be read.
    pub kind: Kind,
    /// Time of the latest sample; the earliest of all before the first.
    pub last_at: UnixMillis,
    /// Since when the sender said that there are no more samples for now; the earliest of all: never.
    ended_at: UnixMillis,
    /// Of a counter that has readings.
    counter: Option<Box<Remembered>>,
}

/// What one sample changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// The sample's own cell, seen from the start of its slot.
    pub cell: Cell,
    /// For a late reading: what changes where the reading after it lies.
    pub correction: Option<Correction>,
}

/// What a late reading changes of the reading after it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correction {
    /// The time of that reading.
    pub at: UnixMillis,
    /// What its increase changes by.
    pub increase: f64,
    /// Its rate per second, by the new neighbour.
    pub rate: Option<f64>,
}

impl SeriesState {
    /// The state of a series that has no sample yet.
    pub fn new(kind: Kind) -> Self {
        let never = UnixMillis::EARLIEST;
        Self { kind, last_at: never, ended_at: never, counter: None }
    }

    /// A state as it was stored.
    pub fn restore(
        kind: Kind,
        last_at: UnixMillis,
        ended_at: Option<UnixMillis>,
        counter: Option<Remembered>,
    ) -> Self {
        let ended_at = ended_at.unwrap_or(UnixMillis::EARLIEST);
        Self { kind, last_at, ended_at, counter: counter.map(Box::new) }
    }

    /// What is remembered of a counter; `None` before its first reading.
    pub fn counter(&self) -> Option<&Remembered> {
        self.counter.as_deref()
    }

    /// Takes what is remembered of a counter: a state with it, while this one keeps all else.
    pub fn take_counter(&mut self) -> Self {
        let rest = Self::restore(self.kind, self.last_at, Some(self.ended_at), None);
        std::mem::replace(self, rest)
    }

    /// Puts back what was taken; what this one learned meanwhile of its latest sample or its end stays.
    pub fn put_counter(&mut self, taken: Self) {
        self.counter = taken.counter;
    }

    /// Whether the series never had a sample.
    pub fn is_fresh(&self) -> bool {
        self.last_at == UnixMillis::EARLIEST
    }

    /// Since when there are no more samples for now, as the sender said.
    pub fn ended_at(&self) -> Option<UnixMillis> {
        (self.ended_at > UnixMillis::EARLIEST && self.ended_at >= self.last_at)
            .then_some(self.ended_at)
    }

    /// Takes in one sample. `start` says since when a counter counts, 0 when not known; the first
    /// reading of a counter counts whole if that is no longer ago than [`START_COUNTS_MS`].
    pub fn observe(
        &mut self,
        at: UnixMillis,
        value: f64,
        start: i64,
        slot_start: UnixMillis,
    ) -> Observed {
        let offset = (at.0 - slot_start.0) as u32;
        self.last_at = self.last_at.max(at);
        match self.kind {
            Kind::Gauge | Kind::Delta => {
                Observed { cell: Cell::single(offset, value), correction: None }
            }
            Kind::Counter => {
                let reading = Reading::new(at.0, value, start);
                let Some(counter) = &mut self.counter else {
                    self.counter = Some(Box::new(Remembered::first(reading)));
                    let (increase, rate) = (reading.increase_since(None), reading.rate_since(None));
                    let cell = Cell::reading(offset, value, increase, rate);
                    return Observed { cell, correction: None };
                };
                if let Some((increase, rate)) = counter.take_behind(&reading) {
                    let cell = Cell::reading(offset, value, increase, Some(rate));
                    return Observed { cell, correction: None };
                }
                let taken = counter.take_between(reading);
                let cell = Cell::reading(offset, value, taken.increase, taken.rate);
                Observed { cell, correction: taken.correction }
            }
        }
    }

    /// Notes that the sender has no more samples from a time on, for now. Samples of before may
    /// still come, in any order; a later one begins the series again.
    pub fn end(&mut self, at: UnixMillis) {
        self.ended_at = self.ended_at.max(at);
    }
}
