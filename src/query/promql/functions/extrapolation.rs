//! Prometheus' extrapolation: the change from the first to the last reading, extended to the
//! window's edges as far as the spacing of the readings suggests.
//!
//! Source: `extrapolatedRate` in Prometheus' promql/functions.go. Must never know: the store, the
//! tree.

use crate::query::promql::value::windows::{Frame, Window};

/// The change of a series from the first reading in a window to the last.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampledChange {
    /// Time of the first reading, Unix milliseconds.
    pub(super) from: f64,
    /// Time of the last reading.
    pub(super) to: f64,
    /// Number of readings.
    pub(super) count: u32,
    /// The change between the two readings.
    pub(super) growth: f64,
    /// The first value of a counter, which cannot have been below zero before. `None` for gauges.
    pub(super) floor: Option<f64>,
}

impl SampledChange {
    /// Returns the change of a gauge. With `as_counter`, decreases are resets.
    pub(super) fn of_gauge(window: &Window<'_>, as_counter: bool) -> Option<Self> {
        if !window.frame.cuts_slots {
            let readings = window.readings().map(|(at, value)| (at as f64, value, 1));
            return Self::of_values(readings, as_counter);
        }
        // The readings of a cut cell have estimated values.
        let ends = window.portions().flat_map(|portion| {
            let (first, last) = (portion.first(), portion.last());
            let others = Some((last.at, last.value, portion.steps()));
            [Some((first.at, first.value, 1)), others.filter(|(.., count)| *count > 0)]
        });
        Self::of_values(ends.flatten(), as_counter)
    }

    /// Calculates the change from times, values and the number of readings of each value.
    fn of_values(
        mut values: impl Iterator<Item = (f64, f64, u32)>,
        as_counter: bool,
    ) -> Option<Self> {
        let first = values.next()?;
        let (mut last, mut count, mut growth) = (first, first.2, 0.0);
        for value in values {
            if as_counter && value.1 < last.1 {
                growth += last.1;
            }
            (last, count) = (value, count + value.2);
        }
        growth += last.1 - first.1;
        let floor = Some(first.1).filter(|value| as_counter && growth > 0.0 && *value >= 0.0);
        Some(Self { from: first.0, to: last.0, count, growth, floor })
    }

    /// Returns the extrapolated change over the whole window.
    pub(super) fn extrapolated(&self, frame: &Frame) -> Option<f64> {
        Some(self.growth * self.factor(frame)?)
    }

    /// Returns the factor from the sampled change to the change over the whole window.
    pub(super) fn factor(&self, frame: &Frame) -> Option<f64> {
        let sampled = (self.to - self.from) / 1000.0;
        if self.count < 2 || sampled <= 0.0 {
            return None;
        }
        let spacing = sampled / f64::from(self.count - 1);
        let near_ms = spacing * 1.1;
        let extension = |distance: f64| if distance >= near_ms { spacing / 2.0 } else { distance };
        let mut to_start = extension((self.from - frame.from as f64) / 1000.0);
        if let Some(floor) = self.floor {
            to_start = to_start.min(sampled * (floor / self.growth));
        }
        let to_end = extension((frame.to as f64 - self.to) / 1000.0);
        Some((sampled + to_start + to_end) / sampled)
    }
}
