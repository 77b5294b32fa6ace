//! The limits of native histograms in the settings of a job.
//!
//! Must never know: series.

use granary_exposition::NativeHistograms;
use granary_histogram::{Histogram, SCHEMA_MAX, SCHEMA_MIN};

use crate::config::Job;

impl Job {
    /// Returns the series of a histogram with native buckets.
    pub(super) fn native_histograms(&self) -> NativeHistograms {
        match (self.scrapes_native_histograms(), self.always_scrape_classic_histograms) {
            (false, _) => NativeHistograms::Ignored,
            (true, Some(true)) => NativeHistograms::BesideClassic,
            (true, _) => NativeHistograms::Preferred,
        }
    }

    /// Returns a histogram with wider buckets where the job requires them, as in Prometheus.
    ///
    /// # Errors
    /// The histogram has more buckets than `native_histogram_bucket_limit` also at the coarsest
    /// schema.
    pub(super) fn limited(&self, histogram: &Histogram) -> Result<Histogram, String> {
        let mut histogram = histogram.clone();
        histogram.lower_schema(coarsest_schema(self.native_histogram_min_bucket_factor));
        let limit = self.native_histogram_bucket_limit;
        let buckets = |h: &Histogram| (h.positive.len() + h.negative.len()) as u64;
        while limit > 0 && buckets(&histogram) > limit {
            if histogram.is_custom() || histogram.schema <= SCHEMA_MIN {
                return Err(format!(
                    "a histogram of {} buckets; native_histogram_bucket_limit is {limit}",
                    buckets(&histogram)
                ));
            }
            histogram.lower_schema(histogram.schema - 1);
        }
        Ok(histogram)
    }
}

/// Returns the finest schema whose buckets grow by at least this factor. The factor of a schema is
/// 2^(2^-schema). Without a factor, this is the finest schema.
fn coarsest_schema(factor_min: f64) -> i8 {
    let grows_enough = |schema: &i8| f64::from(-schema).exp2().exp2() >= factor_min;
    (SCHEMA_MIN..=SCHEMA_MAX).rev().find(grows_enough).unwrap_or(SCHEMA_MIN)
}

#[cfg(test)]
mod tests {
    use granary_histogram::Bucket;

    use super::*;

    fn histogram(schema: i8, indexes: std::ops::Range<i32>) -> Histogram {
        let positive: Vec<_> = indexes.map(|index| Bucket { index, count: 1.0 }).collect();
        let count = positive.len() as f64;
        Histogram { positive, count, ..Histogram::empty(schema) }
    }

    #[test]
    fn buckets_become_wider_until_they_fit_the_limits_of_the_job() {
        let check = |limit: u64, factor: f64, expected: Option<(i8, usize)>| {
            let job = Job {
                native_histogram_bucket_limit: limit,
                native_histogram_min_bucket_factor: factor,
                ..Job::default()
            };
            let found = job.limited(&histogram(3, 1..17)).ok();
            let found = found.map(|found| {
                assert_eq!((found.count, found.zero_count), (16.0, 0.0));
                (found.schema, found.positive.len())
            });
            assert_eq!(found, expected, "{limit} {factor}");
        };
        check(0, 0.0, Some((3, 16)));
        check(16, 1.09, Some((3, 16)));
        check(15, 0.0, Some((2, 8)));
        check(3, 0.0, Some((0, 2)));
        check(0, 1.1, Some((2, 8)));
        check(0, 4.0, Some((-1, 1)));
        check(0, 1e9, Some((-4, 1)));
        let job = Job { native_histogram_bucket_limit: 1, ..Job::default() };
        let wide = histogram(-4, -3..3);
        assert!(job.limited(&wide).unwrap_err().contains("native_histogram_bucket_limit is 1"));
    }
}
