//! Limits on the number of series of metrics.
//!
//! Must never know: the series of the store.

/// The maximum number of patterns.
const PATTERNS_MAX: usize = 100;

/// The maximum numbers of series, each for one metric or for all metrics with a prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricLimits(Vec<MetricLimit>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct MetricLimit {
    /// The metric's name, or a prefix.
    text: String,
    is_prefix: bool,
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
        for (pattern, series_max) in limits {
            let prefix = pattern.strip_suffix('*');
            let text = prefix.unwrap_or(pattern);
            if text.contains('*') || pattern.is_empty() {
                faults.push(format!(
                    "{pattern:?} is neither a metric nor a prefix such as \"debug_*\""
                ));
            } else if series_max == 0 {
                faults.push(format!("{pattern:?} = 0 is too small; use 1 or more"));
            }
            all.push(MetricLimit {
                text: text.to_owned(),
                is_prefix: prefix.is_some(),
                series_max,
            });
        }
        if all.len() > PATTERNS_MAX {
            faults.push(format!("more than {PATTERNS_MAX} patterns; remove some"));
        }
        // The first match is the most specific one.
        all.sort_by(|a, b| (a.is_prefix, b.text.len()).cmp(&(b.is_prefix, a.text.len())));
        if faults.is_empty() { Ok(Self(all)) } else { Err(faults) }
    }

    /// Returns the maximum number of series of a metric; `None` without a limit. The limit of the
    /// metric itself takes precedence over the limit of the longest prefix.
    pub fn of(&self, metric: &str) -> Option<usize> {
        let fits = |limit: &&MetricLimit| {
            if limit.is_prefix { metric.starts_with(&limit.text) } else { metric == limit.text }
        };
        self.0.iter().find(fits).map(|limit| limit.series_max)
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
