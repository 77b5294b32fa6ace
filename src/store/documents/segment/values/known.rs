//! The values of a counter's slots that are decoded before the rates: increases, and the predicted
//! rates.
//!
//! Must never know: how rates are stored.

use crate::store::documents::segment::{buffers::Buffers, times::Times};

/// The smallest or the largest rate of each slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Min,
    Max,
}

impl Side {
    /// Returns the distance in bits between this side's flags and the flags of the smallest rate.
    pub(super) fn shift(self) -> u32 {
        match self {
            Self::Min => 0,
            Self::Max => 1,
        }
    }

    pub(super) fn pick(self, rate: f64, other: f64) -> f64 {
        match self {
            Self::Min if other < rate => other,
            Self::Max if other > rate => other,
            Self::Min | Self::Max => rate,
        }
    }

    /// Returns the predicted bound of an increase on this side.
    pub(super) fn bound(self, increase: i64, other: i64) -> i64 {
        match self {
            Self::Min => increase.min(other),
            Self::Max => increase.max(other),
        }
    }
}

/// The increases up to the first reading of each slot, and within the slot, as scaled numbers.
type Numbers = (Vec<i64>, Vec<i64>);

/// The values of each slot that are known before its rates.
pub(super) struct Known {
    /// The increase up to the first reading, as a scaled number.
    pub(super) before: Vec<i64>,
    /// The increase from the first to the last reading, as a scaled number.
    pub(super) within: Vec<i64>,
    /// The increase.
    pub(super) sum: Vec<f64>,
    /// The predicted rates of each side.
    likely: [Vec<f64>; 2],
    /// The mean number of milliseconds between readings.
    pub(super) step: Vec<i64>,
}

impl Known {
    /// Computes the increases and predicted rates from the readings; for slots before `first_slot`,
    /// these are zero. `passed` has the milliseconds before each slot's first reading.
    pub(super) fn of(
        ((before, within), (first, last)): (Numbers, (&[f64], &[f64])),
        base: f64,
        times: &Times,
        (passed, first_slot): (impl Iterator<Item = i64>, usize),
        buffers: &mut Buffers,
    ) -> Self {
        let count = first.len();
        let [sum, min, max] = [(); 3].map(|()| buffers.doubles.take());
        let mut known =
            Self { before, within, sum, likely: [min, max], step: buffers.whole.take() };
        known.step.reserve(count);
        known.step.resize(first_slot, 0);
        for column in std::iter::once(&mut known.sum).chain(&mut known.likely) {
            column.reserve(count);
            column.resize(first_slot, 0.0);
        }
        let mut previous = first_slot.checked_sub(1).map_or(base, |index| last[index]);
        for (index, passed) in passed.take(count).enumerate().skip(first_slot) {
            let (first, last, n) = (first[index], last[index], times.n[index]);
            let length = i64::from(times.last_at[index]) - i64::from(times.first_at[index]);
            let increase = increase_of(first, previous);
            let rate = per_second(increase, passed);
            let (mut sum, mut rates) = (increase, [rate; 2]);
            if n > 1 {
                let within = increase_of(last, first);
                sum += within;
                if n == 2 {
                    let second = per_second(within, length);
                    rates = [Side::Min.pick(rate, second), Side::Max.pick(rate, second)];
                }
            }
            known.sum.push(sane(sum));
            known.likely[0].push(rates[0]);
            known.likely[1].push(rates[1]);
            known.step.push((passed + length) / i64::from(n.max(1)));
            previous = last;
        }
        known
    }

    /// Returns the number relative to which an increase is stored.
    pub(super) fn bound(&self, side: Side, index: usize, n: u32) -> i64 {
        let (before, within) = (self.before[index], self.within[index]);
        if n < 2 { before } else { side.bound(before, within / i64::from(n - 1)) }
    }

    /// Returns the columns to the buffers, for reuse.
    pub(super) fn recycle(self, buffers: &mut Buffers) {
        let Self { before, within, sum, likely, step } = self;
        buffers.whole.give([before, within, step]);
        buffers.doubles.give(likely.into_iter().chain([sum]));
    }

    pub(super) fn likely(&self, side: Side) -> &[f64] {
        &self.likely[side.shift() as usize]
    }
}

/// Returns the increase of a counter as the model computes it: a decrease means a reset.
pub(super) fn increase_of(value: f64, before: f64) -> f64 {
    if value < before { value } else { value - before }
}

pub(super) fn per_second(increase: f64, passed_ms: i64) -> f64 {
    sane(increase / (passed_ms as f64 / 1000.0))
}

/// Replaces NaN by zero, because the bits of a NaN differ between machines.
fn sane(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}
