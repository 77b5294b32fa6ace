//! The buckets of a classic histogram at one time: quantiles and fractions.
//!
//! Must never know: series, labels, times.

use crate::query::promql::value::numbers::almost_equal;

/// Maximum relative difference between buckets that is attributed to the rounding of floats.
const NOISE: f64 = 1e-12;

/// A bucket of a histogram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bucket {
    /// The upper bound.
    pub(super) bound: f64,
    /// Number of observations up to the bound.
    pub(super) count: f64,
}

/// Merges buckets with equal bounds and makes the counts monotonic. Returns `None` for an
/// incomplete histogram. The second result is true when counts were changed by more than rounding.
fn normalize(mut buckets: Vec<Bucket>, makes_monotonic: bool) -> Option<(Vec<Bucket>, bool)> {
    if buckets.last().is_none_or(|last| last.bound != f64::INFINITY) {
        return None;
    }
    buckets.dedup_by(|next, bucket| {
        let is_same_bound = next.bound == bucket.bound;
        if is_same_bound {
            bucket.count += next.count;
        }
        is_same_bound
    });
    let mut fixed = false;
    if makes_monotonic {
        let mut before = buckets[0].count;
        for bucket in &mut buckets[1..] {
            if bucket.count == before {
                continue;
            }
            let noise = almost_equal(before, bucket.count, NOISE);
            if noise || bucket.count < before {
                fixed |= !noise;
                bucket.count = before;
            } else {
                before = bucket.count;
            }
        }
    }
    Some((buckets, fixed))
}

/// Returns the quantile with linear interpolation, and true when counts were changed.
pub(super) fn quantile(q: f64, buckets: Vec<Bucket>) -> (f64, bool) {
    if q.is_nan() {
        return (f64::NAN, false);
    }
    if !(0.0..=1.0).contains(&q) {
        return (if q < 0.0 { f64::NEG_INFINITY } else { f64::INFINITY }, false);
    }
    let Some((buckets, fixed)) = normalize(buckets, true) else { return (f64::NAN, false) };
    let last = buckets.len() - 1;
    let observed = buckets[last].count;
    if last == 0 || observed == 0.0 {
        return (f64::NAN, fixed);
    }
    let rank = q * observed;
    let target = first_of(&buckets[..last], rank);
    if target == last {
        return (buckets[last - 1].bound, fixed);
    }
    let bucket = buckets[target];
    if target == 0 && bucket.bound <= 0.0 {
        return (bucket.bound, fixed);
    }
    let before = target.checked_sub(1).map(|index| buckets[index]);
    let Bucket { bound: from, count } = before.unwrap_or(Bucket { bound: 0.0, count: 0.0 });
    (from + (bucket.bound - from) * ((rank - count) / (bucket.count - count)), fixed)
}

/// Returns the first bucket with at least `rank` observations. With NaN counts, the result of the
/// binary search is the same as in Prometheus.
fn first_of(buckets: &[Bucket], rank: f64) -> usize {
    let (mut from, mut to) = (0, buckets.len());
    while from < to {
        let middle = usize::midpoint(from, to);
        if buckets[middle].count >= rank { to = middle } else { from = middle + 1 }
    }
    from
}

/// Returns the fraction of the observations between two values.
pub(super) fn fraction(low: f64, high: f64, buckets: Vec<Bucket>) -> f64 {
    let Some((buckets, _)) = normalize(buckets, false) else { return f64::NAN };
    let observed = buckets.last().map_or(0.0, |last| last.count);
    if observed == 0.0 || observed.is_nan() || low.is_nan() || high.is_nan() {
        return f64::NAN;
    }
    if low >= high {
        return 0.0;
    }
    (rank_of(high, &buckets) - rank_of(low, &buckets)) / observed
}

/// Returns the number of observations below a value, with linear interpolation. A bucket without a
/// lower bound counts in full, a bucket without an upper bound does not count.
fn rank_of(value: f64, buckets: &[Bucket]) -> f64 {
    let mut below = Bucket { bound: f64::NEG_INFINITY, count: 0.0 };
    for bucket in buckets {
        // The first bucket begins at zero, unless its upper bound is not positive.
        let lower_bound =
            if below.bound.is_infinite() && bucket.bound > 0.0 { 0.0 } else { below.bound };
        if value <= lower_bound {
            return below.count;
        }
        if value < bucket.bound {
            if lower_bound == f64::NEG_INFINITY {
                return bucket.count;
            }
            let part = (value - lower_bound) / (bucket.bound - lower_bound);
            return below.count + (bucket.count - below.count) * part;
        }
        below = *bucket;
    }
    below.count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(all: &[(f64, f64)]) -> Vec<Bucket> {
        all.iter().map(|(bound, count)| Bucket { bound: *bound, count: *count }).collect()
    }

    #[test]
    fn quantiles_are_linear_within_a_bucket() {
        let all = [(0.1, 2.0), (0.5, 6.0), (1.0, 8.0), (f64::INFINITY, 10.0)];
        for (q, expected) in [
            (0.0, 0.0),
            (0.1, 0.05),
            (0.4, 0.3),
            (0.8, 1.0),
            (0.9, 1.0),
            (-1.0, f64::NEG_INFINITY),
            (2.0, f64::INFINITY),
        ] {
            let (found, fixed) = quantile(q, buckets(&all));
            assert!((found == expected || (found - expected).abs() < 1e-12) && !fixed, "{q}");
        }
        assert!(quantile(0.5, buckets(&all[..3])).0.is_nan());
        assert!(quantile(0.5, buckets(&[(f64::INFINITY, 3.0)])).0.is_nan());
        assert_eq!(quantile(0.5, buckets(&[(-1.0, 4.0), (f64::INFINITY, 4.0)])).0, -1.0);
        let falling = [(1.0, 5.0), (2.0, 3.0), (f64::INFINITY, 6.0)];
        assert!(quantile(0.5, buckets(&falling)).1);
    }

    #[test]
    fn fractions_are_linear_within_a_bucket() {
        let all = [(0.1, 2.0), (0.5, 6.0), (f64::INFINITY, 10.0)];
        for (low, high, expected) in [
            (0.0, 0.1, 0.2),
            (0.0, 0.3, 0.4),
            (0.1, 0.5, 0.4),
            (-1.0, f64::INFINITY, 1.0),
            (1.0, 0.0, 0.0),
        ] {
            let found = fraction(low, high, buckets(&all));
            assert!((found - expected).abs() < 1e-12, "{low} {high} {found}");
        }
        let below_zero = [(-3.0, 10.0), (-2.0, 12.0), (-1.0, 15.0), (f64::INFINITY, 100.0)];
        for (low, high, expected) in [
            (-4.0, -2.0, 0.02),
            (f64::NEG_INFINITY, -2.0, 0.12),
            (-2.5, -1.0, 0.04),
            (-9.0, -8.0, 0.0),
            (-1.5, 5.0, 0.015),
            (-1.0, f64::INFINITY, 0.85),
        ] {
            let found = fraction(low, high, buckets(&below_zero));
            assert!((found - expected).abs() < 1e-12, "{low} {high} {found}");
        }
    }
}
