//! The expected content of a slot: a naive aggregate of its samples.

use granary::model::{Cell, Kind};

/// The expected samples of one slot.
#[derive(Debug, Clone, Default)]
pub(super) struct ExpectedSlot {
    /// The number of samples that must be present; other samples may be lost.
    samples_min: u32,
    /// All samples, each with its offset in the slot and its value.
    samples: Vec<(u32, f64)>,
    /// The growth of a counter in the slot, or `None` if it is not guaranteed.
    growth: Option<f64>,
    rates: Vec<f64>,
    /// The growth of a counter of histograms, or `None` if it is not guaranteed: numbers of
    /// observations with their signs.
    histogram_growth: Option<Vec<(f64, f64)>>,
}

impl ExpectedSlot {
    pub(super) fn add(&mut self, offset: u32, value: f64, is_required: bool) {
        self.samples_min += u32::from(is_required);
        self.samples.push((offset, value));
    }

    pub(super) fn add_increase(&mut self, increase: f64) {
        *self.growth.get_or_insert(0.0) += increase;
    }

    pub(super) fn add_rate(&mut self, rate: f64) {
        self.rates.push(rate);
    }

    /// Marks the samples as possibly lost.
    pub(super) fn allow_loss(&mut self) {
        self.samples_min = 0;
    }

    /// Adds the growth of a counter of histograms between two numbers of observations.
    pub(super) fn add_growth(&mut self, count: f64, since: f64) {
        let terms = self.histogram_growth.get_or_insert_default();
        terms.extend([(count, 1.0), (since, -1.0)]);
    }

    /// Returns the numbers of observations of which the total of `n` histograms consists, each with
    /// its sign; `None` if the total is not guaranteed.
    pub(super) fn total_of_histograms(&self, kind: Kind, n: u32) -> Option<Vec<(f64, f64)>> {
        let count = self.samples.len() as u32;
        if kind == Kind::Histogram {
            let is_whole = n == count && self.samples_min == count;
            return self.histogram_growth.clone().filter(|_| is_whole);
        }
        (n == count).then(|| self.samples.iter().map(|(_, value)| (*value, 1.0)).collect())
    }

    pub(super) fn may_be_empty(&self) -> bool {
        self.samples_min == 0
    }

    /// Compares the slot with the slot of the store; returns true if growth was compared.
    pub(super) fn check(&self, found: &Cell, kind: Kind) -> Result<bool, String> {
        let sample_count = self.samples.len() as u32;
        if !(self.samples_min..=sample_count).contains(&found.n) {
            return Err(format!(
                "{} samples instead of {} to {sample_count}",
                found.n, self.samples_min
            ));
        }
        if found.n < sample_count || sample_count == 0 {
            return Ok(false);
        }
        let by_time = |left: &(u32, f64), right: &(u32, f64)| {
            left.0.cmp(&right.0).then(left.1.total_cmp(&right.1))
        };
        let mut sorted = self.samples.clone();
        sorted.sort_by(by_time);
        let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
        let ends = [(found.first_at, found.first), (found.last_at, found.last)];
        if ends != [first, last] {
            return Err(format!("first and last {ends:?} instead of {first:?} and {last:?}"));
        }
        let values: Vec<_> = self.samples.iter().map(|(_, value)| *value).collect();
        let (sum, values) = match (kind, self.growth) {
            (Kind::Gauge | Kind::Delta, _) => (values.iter().sum(), &values),
            // The growth is guaranteed only if all samples are still kept.
            (Kind::Counter, Some(growth)) if self.samples_min == sample_count => {
                (growth, &self.rates)
            }
            (Kind::Counter, _) => return Ok(false),
            (Kind::Histogram | Kind::GaugeHistogram | Kind::DeltaHistogram, _) => {
                unreachable!("the cells of histograms have the kind of their counts")
            }
        };
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Growth and rates are whole numbers: counters grow by one per millisecond.
        if (found.sum, found.min, found.max) != (sum, min, max) {
            let found_values = (found.sum, found.min, found.max);
            return Err(format!("sum, min, max {found_values:?} instead of {:?}", (sum, min, max)));
        }
        if kind != Kind::Counter {
            let mean = sum / f64::from(sample_count);
            let m2: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
            let is_near = |found: f64| (found - m2).abs() <= 1e-9 * m2.max(mean * mean * 1e-3);
            if !found.second_moment().is_some_and(is_near) {
                return Err(format!("m2 {} instead of {m2}", found.m2));
            }
        }
        Ok(kind == Kind::Counter)
    }
}
