//! The values of a timer in one interval: exact sums, and a histogram, or a bounded sample for the
//! quantiles.

use granary_histogram::Histogram;

use crate::budget::Budget;

/// The maximum sample size for quantiles; beyond it, every second value is dropped.
const VALUES_MAX: usize = 4096;
/// The initial sample size.
pub(crate) const VALUES_MIN: usize = 8;
/// The number of buckets of a histogram for which its series is charged.
const BUCKETS_MIN: usize = 4;
/// The memory of a bucket: here, in a reading, and encoded; lists grow by doubling.
const BUCKET_BYTES: usize = 64;

/// The values of a timer in one interval.
#[derive(Debug)]
pub(crate) struct Timer {
    /// Events, scaled up by the sample rate.
    pub(crate) count: f64,
    pub(crate) sum: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) distribution: Distribution,
}

/// The distribution of the values.
#[derive(Debug)]
pub(crate) enum Distribution {
    /// A histogram, whose quantiles have an error of at most 0.55 %.
    Histogram {
        histogram: Histogram,
        /// The number of buckets for which memory is charged.
        room: usize,
    },
    /// A sample of the values.
    Values(ValueSample),
}

/// A bounded sample of values.
#[derive(Debug)]
pub(crate) struct ValueSample {
    values: Vec<f64>,
    /// The sampling step: one of this many values is kept.
    stride: usize,
    added: usize,
}

impl Timer {
    pub(crate) fn new(has_quantiles: bool) -> Self {
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        let distribution = if has_quantiles {
            let values = Vec::with_capacity(VALUES_MIN);
            Distribution::Values(ValueSample { values, stride: 1, added: 0 })
        } else {
            Distribution::Histogram { histogram: Histogram::sketch(), room: BUCKETS_MIN }
        };
        Self { count: 0.0, sum: 0.0, min, max, distribution }
    }

    /// Adds a value. Returns false, and changes nothing, when a sum would not be finite.
    pub(crate) fn add(&mut self, value: f64, rate: f64, budget: &mut Budget) -> bool {
        let (count, sum) = (self.count + 1.0 / rate, self.sum + value / rate);
        if !(count.is_finite() && sum.is_finite()) {
            return false;
        }
        (self.count, self.sum) = (count, sum);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        match &mut self.distribution {
            Distribution::Histogram { histogram, room } => {
                histogram.observe(value, 1.0 / rate);
                limit_buckets(histogram, room, budget);
            }
            Distribution::Values(sample) => sample.add(value, budget),
        }
        true
    }
}

/// Charges the memory of a histogram. Without memory, its buckets become wider.
fn limit_buckets(histogram: &mut Histogram, room: &mut usize, budget: &mut Budget) {
    let buckets = |histogram: &Histogram| histogram.positive.len() + histogram.negative.len();
    while buckets(histogram) > *room {
        if budget.charge(*room * BUCKET_BYTES) {
            *room *= 2;
        } else {
            histogram.limit_buckets(*room / 2);
            return;
        }
    }
}

impl ValueSample {
    fn add(&mut self, value: f64, budget: &mut Budget) {
        if self.added.is_multiple_of(self.stride) {
            self.values.push(value);
            self.make_room(budget);
        }
        self.added += 1;
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

    fn sample_of(timer: &mut Timer) -> &mut ValueSample {
        match &mut timer.distribution {
            Distribution::Values(sample) => sample,
            Distribution::Histogram { .. } => panic!("a histogram"),
        }
    }

    #[test]
    fn the_sample_is_bounded_and_the_sums_are_exact() {
        let mut timer = Timer::new(true);
        let mut budget = Budget::new(1 << 20);
        assert!((0..100_000).all(|value| timer.add(f64::from(value), 1.0, &mut budget)));
        assert_eq!((timer.count, timer.min, timer.max), (100_000.0, 0.0, 99_999.0));
        let sample = sample_of(&mut timer);
        assert!(sample.values.len() < VALUES_MAX && sample.values.len() > VALUES_MAX / 4);
        assert!(sample.values.capacity() <= VALUES_MAX);
        let [Some(median)] = sample.quantiles([0.5]) else { panic!("no values") };
        assert!((49_000.0..51_000.0).contains(&median), "{median}");
    }

    #[test]
    fn a_timer_without_a_budget_keeps_few_values_and_exact_sums() {
        let mut timer = Timer::new(true);
        let mut no_budget = Budget::new(0);
        assert!((1..=1000).all(|value| timer.add(f64::from(value), 1.0, &mut no_budget)));
        assert_eq!((timer.count, timer.sum, timer.max), (1000.0, 500_500.0, 1000.0));
        let sample = sample_of(&mut timer);
        assert_eq!(sample.values.capacity(), VALUES_MIN);
        let [Some(median)] = sample.quantiles([0.5]) else { panic!("no values") };
        assert!((250.0..750.0).contains(&median), "{median}");
    }

    #[test]
    fn quantiles_of_a_histogram_are_within_one_percent_and_sampled_values_count_more() {
        let mut timer = Timer::new(false);
        let mut budget = Budget::new(1 << 20);
        assert!((1..=10_000).all(|value| timer.add(f64::from(value), 0.5, &mut budget)));
        let Distribution::Histogram { histogram, .. } = &timer.distribution else { panic!() };
        assert_eq!((histogram.count, histogram.sum), (20_000.0, timer.sum));
        for quantile in [0.01, 0.5, 0.9, 0.99, 0.999] {
            let (found, exact) = (histogram.quantile(quantile), quantile * 10_000.0);
            assert!((found / exact - 1.0).abs() < 0.01, "{quantile}: {found}");
        }
    }

    #[test]
    fn a_histogram_without_a_budget_has_few_buckets_and_all_observations() {
        let mut timer = Timer::new(false);
        let mut no_budget = Budget::new(0);
        for value in 1..=1000 {
            let value = f64::from(value) * if value % 2 == 0 { 1e3 } else { -1e-3 };
            assert!(timer.add(value, 1.0, &mut no_budget));
        }
        let Distribution::Histogram { histogram, .. } = &timer.distribution else { panic!() };
        assert!(histogram.positive.len() <= BUCKETS_MIN && histogram.negative.len() <= BUCKETS_MIN);
        let buckets = histogram.positive.iter().chain(&histogram.negative);
        assert_eq!(buckets.map(|bucket| bucket.count).sum::<f64>(), 1000.0);
    }
}
