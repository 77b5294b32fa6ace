//! The readings of a histogram that counts up: each reading adds the growth since the previous
//! reading in time to its slot.
//!
//! The first reading and the latest ones are remembered, in order of time. A late reading between
//! two neighbours takes its part from the later one. A late reading whose neighbours are forgotten
//! adds nothing, because the readings around it already include its part; a reset that only this
//! reading shows is missed. See `counter`, whose rules for starts these readings share.

use std::ops::Range;

use super::{Histogram, ResetHint, UnixMillis, counter::Reading};

/// The maximum number of remembered readings of a series.
pub const HISTOGRAM_READINGS_MAX: usize = 4;

/// A remembered reading.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramReading {
    /// The time, and the age at that time; the value is not used.
    pub reading: Reading,
    /// True when a reading between this one and the previous remembered one was forgotten.
    pub follows_forgotten: bool,
    /// The histogram.
    pub histogram: Histogram,
}

/// The readings of one series, ascending.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HistogramReadings(Vec<HistogramReading>);

/// The effect of a reading: its increase, and the change of the increase of the reading after it.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramIncrease {
    /// The growth up to the reading.
    pub increase: Histogram,
    /// The time of the reading after it, and the change of that reading's increase.
    pub correction: Option<(UnixMillis, Histogram)>,
}

impl HistogramReading {
    fn new(at: i64, start: i64, histogram: Histogram) -> Self {
        let reading = Reading::new(at, histogram.count, start);
        Self { reading, follows_forgotten: false, histogram }
    }

    /// Returns the growth since the previous reading, or since the start if that is recent.
    fn increase_since(&self, before: Option<&Self>) -> Histogram {
        let Some(before) = before else {
            let counts = self.reading.counts_whole();
            return if counts { self.whole() } else { nothing(&self.histogram) };
        };
        let restarted = self.reading.restarted_since(&before.reading);
        let mut increase = self.whole();
        if restarted
            || self.was_reset_since(before)
            || increase.subtract(&before.histogram).is_err()
        {
            return self.whole();
        }
        Histogram { hint: ResetHint::Unknown, ..increase }
    }

    /// Returns true if the counter was reset in between. A sender's claim that there was no reset
    /// is ignored: it refers to the previous sample, which may have been lost, and an increase must
    /// not be negative.
    fn was_reset_since(&self, before: &Self) -> bool {
        if self.histogram.hint == ResetHint::NotReset {
            return self.whole().detect_reset(&before.histogram);
        }
        self.histogram.detect_reset(&before.histogram)
    }

    fn whole(&self) -> Histogram {
        Histogram { hint: ResetHint::Unknown, ..self.histogram.clone() }
    }
}

/// Returns the increase of a reading that adds nothing.
fn nothing(histogram: &Histogram) -> Histogram {
    Histogram { hint: ResetHint::Unknown, ..histogram.emptied() }
}

impl HistogramReadings {
    /// Returns the readings of a stored state; `None` when they are not ascending or too many.
    pub fn restore(readings: Vec<HistogramReading>) -> Option<Self> {
        let is_ascending = readings.is_sorted_by(|one, next| one.reading.at < next.reading.at);
        (is_ascending && readings.len() <= HISTOGRAM_READINGS_MAX).then_some(Self(readings))
    }

    /// Returns the readings, ascending.
    pub fn in_order(&self) -> &[HistogramReading] {
        &self.0
    }

    /// Returns the approximate bytes of the readings.
    pub fn bytes(&self) -> usize {
        let reading_bytes = |known: &HistogramReading| {
            size_of::<HistogramReading>() - size_of::<Histogram>() + known.histogram.bytes()
        };
        self.0.iter().map(reading_bytes).sum()
    }

    /// Adds a reading of a histogram that began at `start`, Unix milliseconds, 0 if unknown.
    pub fn observe(
        &mut self,
        at: UnixMillis,
        start: i64,
        histogram: &Histogram,
    ) -> HistogramIncrease {
        let mut new = HistogramReading::new(at.0, start, histogram.clone());
        let position = self.0.partition_point(|known| known.reading.at < at.0);
        if position == 0
            && let Some(HistogramReading { reading: first, .. }) = self.0.first()
            && !(first.counts_whole() && first.began_before(at.0))
        {
            new.reading = new.reading.without_count();
        }
        let before = position.checked_sub(1).map(|index| &self.0[index]);
        let nothing = || HistogramIncrease { increase: nothing(histogram), correction: None };
        let correction = match self.0.get(position) {
            None => None,
            Some(next) if next.reading.at == at.0 || next.follows_forgotten => return nothing(),
            // The sender's clock was set back: the decrease after the late reading is no reset.
            Some(next) if next.reading.began_before(at.0) && next.was_reset_since(&new) => {
                return nothing();
            }
            Some(next) => {
                let mut change = next.increase_since(Some(&new));
                // Both are increases up to the same reading, so they are compatible.
                let is_known = change.subtract(&next.increase_since(before)).is_ok();
                is_known.then_some((UnixMillis(next.reading.at), change))
            }
        };
        let increase = new.increase_since(before);
        self.0.insert(position, new);
        if self.0.len() > HISTOGRAM_READINGS_MAX {
            self.0.remove(1);
            self.0[1].follows_forgotten = true;
        }
        HistogramIncrease { increase, correction }
    }

    /// Notes that the samples of a range of time were erased: growth within the range does not
    /// reappear in a later reading.
    pub fn note_erased(&mut self, range: &Range<i64>) {
        let mut is_erased = false;
        for known in &mut self.0 {
            let was_erased = std::mem::replace(&mut is_erased, range.contains(&known.reading.at));
            known.follows_forgotten |= is_erased || was_erased;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::counter::start_without_count;

    #[test]
    fn growth_is_never_negative_when_a_sender_knows_of_no_reset() {
        let reading = |count: u32, hint| {
            let mut histogram = Histogram { hint, ..Histogram::sketch() };
            histogram.observe(2.0, count.into());
            histogram
        };
        let mut readings = HistogramReadings::default();
        let mut grown = |at, count, hint| {
            readings.observe(UnixMillis(at), 0, &reading(count, hint)).increase.count
        };
        grown(1000, 9, ResetHint::Unknown);
        assert_eq!(grown(2000, 11, ResetHint::NotReset), 2.0);
        // The sample after the reset was lost.
        assert_eq!(grown(3000, 4, ResetHint::NotReset), 4.0);
    }

    #[test]
    fn a_late_reading_before_the_first_adds_its_whole_value_only_to_a_first_reading_that_did() {
        let reading = |count: u32| {
            let mut histogram = Histogram::sketch();
            histogram.observe(2.0, count.into());
            histogram
        };
        let grown_from = |start_of_first: i64, late: u32| {
            let mut readings = HistogramReadings::default();
            let first = readings.observe(UnixMillis(9000), start_of_first, &reading(9));
            let late = readings.observe(UnixMillis(5000), 1000, &reading(late));
            let correction = late.correction.map(|(_, change)| change.count);
            [first.increase.count, late.increase.count, correction.unwrap_or_default()]
        };
        assert_eq!(grown_from(1000, 4), [9.0, 4.0, -4.0]);
        // The growth of the first reading did not count, so its part does not count either.
        assert_eq!(grown_from(0, 4), [0.0, 0.0, 5.0]);
        let not_counted = |start: i64| start_without_count(9000, start);
        assert_eq!(grown_from(not_counted(1000), 4), [0.0, 0.0, 5.0]);
        // A restart between both readings is not a clock that was set back.
        assert_eq!(grown_from(not_counted(8000), 20), [0.0, 0.0, 9.0]);
        assert_eq!(grown_from(not_counted(1000), 20), [0.0, 0.0, 0.0]);
    }
}
