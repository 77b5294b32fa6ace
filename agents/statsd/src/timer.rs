//! The values of a timer in one interval: exact sums, and a bounded sample for the quantiles.

use crate::budget::Budget;

/// The maximum sample size for quantiles; beyond it, every second value is dropped.
const VALUES_MAX: usize = 4096;
/// The initial sample size.
pub(crate) const VALUES_MIN: usize = 8;

/// The values of a timer in one interval.
#[derive(Debug)]
pub(crate) struct Timer {
    /// Events, scaled up by the sample rate.
    pub(crate) count: f64,
    pub(crate) sum: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    values: Vec<f64>,
    /// The sampling step: one of this many values is kept.
    stride: usize,
    added: usize,
}

impl Default for Timer {
    fn default() -> Self {
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        let values = Vec::with_capacity(VALUES_MIN);
        Self { count: 0.0, sum: 0.0, min, max, values, stride: 1, added: 0 }
    }
}

impl Timer {
    /// Adds a value. Returns false, and changes nothing, when a sum would not be finite.
    pub(crate) fn add(&mut self, value: f64, rate: f64, budget: &mut Budget) -> bool {
        let (count, sum) = (self.count + 1.0 / rate, self.sum + value / rate);
        if !(count.is_finite() && sum.is_finite()) {
            return false;
        }
        (self.count, self.sum) = (count, sum);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        if self.added.is_multiple_of(self.stride) {
            self.values.push(value);
            self.make_room(budget);
        }
        self.added += 1;
        true
    }

    /// Makes room in a full sample: it grows while the budget allows, otherwise every second value
    /// is dropped.
    fn make_room(&mut self, budget: &mut Budget) {
        let length = self.values.len();
        if length < self.values.capacity() {
            return;
        }
        if length < VALUES_MAX && budget.charge(length * size_of::<f64>()) {
            self.values.reserve_exact(length);
            return;
        }
        let mut index = 0;
        self.values.retain(|_| {
            index += 1;
            index % 2 == 1
        });
        self.stride *= 2;
    }

    /// Returns the values of these quantiles in the sample, by the nearest rank.
    pub(crate) fn quantiles<const N: usize>(&mut self, quantiles: [f64; N]) -> [Option<f64>; N] {
        self.values.sort_by(f64::total_cmp);
        let last = self.values.len().saturating_sub(1);
        quantiles.map(|quantile| {
            let rank = (self.values.len() as f64 * quantile).ceil() as usize;
            self.values.get(rank.saturating_sub(1).min(last)).copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_bounded_and_the_sums_are_exact() {
        let mut timer = Timer::default();
        let mut budget = Budget::new(1 << 20);
        assert!((0..100_000).all(|value| timer.add(f64::from(value), 1.0, &mut budget)));
        assert!(timer.values.len() < VALUES_MAX && timer.values.len() > VALUES_MAX / 4);
        assert!(timer.values.capacity() <= VALUES_MAX);
        assert_eq!((timer.count, timer.min, timer.max), (100_000.0, 0.0, 99_999.0));
        let [Some(median)] = timer.quantiles([0.5]) else { panic!("no values") };
        assert!((49_000.0..51_000.0).contains(&median), "{median}");
    }

    #[test]
    fn a_timer_without_a_budget_keeps_few_values_and_exact_sums() {
        let mut timer = Timer::default();
        let mut no_budget = Budget::new(0);
        assert!((1..=1000).all(|value| timer.add(f64::from(value), 1.0, &mut no_budget)));
        assert_eq!(timer.values.capacity(), VALUES_MIN);
        assert_eq!((timer.count, timer.sum, timer.max), (1000.0, 500_500.0, 1000.0));
        let [Some(median)] = timer.quantiles([0.5]) else { panic!("no values") };
        assert!((250.0..750.0).contains(&median), "{median}");
    }
}
