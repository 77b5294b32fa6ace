//! Limits on the number of series of metrics.
//!
//! Must never know: the series of the store.

use super::MetricPattern;

/// The maximum number of patterns.
const PATTERNS_MAX: usize = 100;

/// The maximum numbers of series, each for one metric or for all metrics with a prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricLimits(Vec<MetricLimit>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct MetricLimit {
    pattern: MetricPattern,
    series_max: usize,
}

impl MetricLimits {
    /// Parses limits by pattern. A pattern is a metric's name, or a prefix followed by `*`.
    ///
    /// # Errors
    /// All faults, each with its pattern and a remedy.
    pub fn new<'a>(
        limits: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> Result<Self, Vec<String>> {
        let (mut all, mut faults) = (Vec::new(), Vec::new());
        let mut patterns = 0;
        for (pattern, series_max) in limits {
            patterns += 1;
            match MetricPattern::parse(pattern) {
                Err(fault) => faults.push(fault),
                Ok(_) if series_max == 0 => {
                    faults.push(format!("{pattern:?} = 0 is too small; use 1 or more"));
                }
                Ok(pattern) => all.push(MetricLimit { pattern, series_max }),
            }
        }
        if patterns > PATTERNS_MAX {
            faults.push(format!("more than {PATTERNS_MAX} patterns; remove some"));
        }
        // The first match is the most specific one.
        all.sort_by_key(|limit| limit.pattern.specificity());
        if faults.is_empty() { Ok(Self(all)) } else { Err(faults) }
    }

    /// Returns the maximum number of series of a metric; `None` without a limit. The limit of the
    /// metric itself takes precedence over the limit of the longest prefix.
    pub fn of(&self, metric: &str) -> Option<usize> {
        let found = self.0.iter().find(|limit| limit.pattern.matches(metric));
        found.map(|limit| limit.series_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_counts_before_the_longest_beginning() {
        let limits = [("debug_*", 5), ("debug_http_*", 6), ("debug_http_a", 7), ("up", 1)];
        let limits = MetricLimits::new(limits).unwrap();
        let of = |metric| limits.of(metric);
        assert_eq!(of("debug_http_a"), Some(7));
        assert_eq!(of("debug_http_b"), Some(6));
        assert_eq!([of("debug_x"), of("up"), of("upper")], [Some(5), Some(1), None]);
        let all = MetricLimits::new([("*", 9), ("a", 2)]).unwrap();
        assert_eq!([all.of("a"), all.of("b")], [Some(2), Some(9)]);
        let faults = MetricLimits::new([("a*b", 1), ("", 2), ("c", 0)]).unwrap_err();
        assert_eq!(faults.len(), 3, "{faults:?}");
    }
}
