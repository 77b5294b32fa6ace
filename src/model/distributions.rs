//! The gauges whose samples are observations of a distribution, by the settings.
//!
//! The series of such a gauge is one of histograms: each sample becomes a histogram of one
//! observation, and slots merge them. Must never know: the series of the store.

use std::sync::Arc;

use super::{Histogram, HistogramSample, Kind, MetricPattern};

/// The maximum number of patterns.
pub const DISTRIBUTIONS_MAX: usize = 100;

/// The memory of an observation until it is durable: here, in a batch, and in the journal's record.
pub const OBSERVATION_BYTES: usize = 3 * (size_of::<HistogramSample>() + 16);

/// The patterns of `[[ingest.distribution]]`. All clones share them.
#[derive(Debug, Clone, Default)]
pub struct Distributions(Option<Arc<[MetricPattern]>>);

impl Distributions {
    /// Returns the gauges that match one of the patterns.
    pub fn new(patterns: Vec<MetricPattern>) -> Self {
        Self((!patterns.is_empty()).then(|| patterns.into()))
    }

    /// Returns true without patterns.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns true when both have the same patterns. Clones are compared by their address.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(left), Some(right)) => Arc::ptr_eq(left, right) || left == right,
            _ => false,
        }
    }

    /// Returns true when the samples of a series of this kind are observations.
    pub fn observes(&self, metric: &str, kind: Kind) -> bool {
        let Some(patterns) = &self.0 else { return false };
        kind == Kind::Gauge && patterns.iter().any(|pattern| pattern.matches(metric))
    }
}

/// Returns the histogram of an observation.
pub fn observation(value: f64) -> Histogram {
    let mut histogram = Histogram::sketch();
    histogram.observe(value, 1.0);
    histogram.positive.shrink_to_fit();
    histogram.negative.shrink_to_fit();
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gauges_that_match_a_pattern_are_distributions() {
        let patterns = ["wait", "http_*"].map(|text| MetricPattern::parse(text).unwrap());
        let distributions = Distributions::new(patterns.clone().into());
        let observes = |metric| distributions.observes(metric, Kind::Gauge);
        assert_eq!(["wait", "waits", "http_a"].map(observes), [true, false, true]);
        assert!(!distributions.observes("wait", Kind::Counter));
        assert!(!distributions.observes("wait", Kind::DeltaHistogram));
        assert!(!Distributions::new(Vec::new()).observes("wait", Kind::Gauge));
        assert!(distributions.is_same(&distributions.clone()));
        // Each reload parses the settings again.
        assert!(distributions.is_same(&Distributions::new(patterns.to_vec())));
        assert!(!distributions.is_same(&Distributions::new(patterns[..1].to_vec())));
        assert!(!distributions.is_same(&Distributions::default()));
    }

    #[test]
    fn an_observation_is_within_one_percent() {
        for value in [1e-9, 0.3, 1.0, 123.456, 1e12, -7.5] {
            let histogram = observation(value);
            assert_eq!((histogram.count, histogram.sum), (1.0, value));
            assert!((histogram.quantile(0.5) / value - 1.0).abs() < 0.01, "{value}");
        }
        assert_eq!(observation(0.0).quantile(0.5), 0.0);
    }
}
