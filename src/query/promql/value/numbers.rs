//! Prometheus' arithmetic: compensated sums, means, quantiles, and the formatting of numbers.
//!
//! Must never know: series, times.

/// A compensated sum (Neumaier's variant of Kahan's algorithm).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    /// Adds a number.
    pub(crate) fn add(&mut self, value: f64) {
        let total = self.sum + value;
        if total.is_infinite() {
            self.lost = 0.0;
        } else if self.sum.abs() >= value.abs() {
            self.lost += (self.sum - total) + value;
        } else {
            self.lost += (value - total) + self.sum;
        }
        self.sum = total;
    }

    /// Adds all numbers of another sum.
    pub(crate) fn add_all(&mut self, other: Self) {
        self.add(other.sum);
        self.lost += other.lost;
    }

    /// Returns the rounded sum, and what rounding lost.
    pub(crate) fn parts(&self) -> [f64; 2] {
        [self.sum, self.lost]
    }

    /// Returns the sum of its parts.
    pub(crate) fn of_parts([sum, lost]: [f64; 2]) -> Self {
        Self { sum, lost }
    }

    /// Returns the sum.
    pub(crate) fn total(&self) -> f64 {
        if self.sum.is_infinite() { self.sum } else { self.sum + self.lost }
    }
}

/// A mean that switches to an incremental calculation when the sum would overflow.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mean {
    count: f64,
    sum: Sum,
    incremental: bool,
}

impl Mean {
    /// Adds the sum of `weight` samples.
    pub(crate) fn add_sum(&mut self, sum: f64, weight: f64) {
        if weight == 1.0 || self.incremental {
            return self.add(sum / weight);
        }
        self.sum.add(sum);
        self.count += weight;
    }

    /// Adds a number.
    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1.0;
        if !self.incremental {
            let mut new_sum = self.sum;
            new_sum.add(value);
            if self.count == 1.0 || !new_sum.sum.is_infinite() {
                self.sum = new_sum;
                return;
            }
            self.incremental = true;
            self.sum.sum /= self.count - 1.0;
            self.sum.lost /= self.count - 1.0;
        }
        let weight = (self.count - 1.0) / self.count;
        self.sum = Sum { sum: weight * self.sum.sum, lost: weight * self.sum.lost };
        self.sum.add(value / self.count);
    }

    /// Adds all numbers of another mean.
    pub(crate) fn add_all(&mut self, other: Self) {
        let count = self.count + other.count;
        if !self.incremental && !other.incremental {
            let mut sum = self.sum;
            sum.add_all(other.sum);
            let has_infinite = self.sum.sum.is_infinite() || other.sum.sum.is_infinite();
            if has_infinite || !sum.sum.is_infinite() {
                *self = Self { count, sum, incremental: false };
                return;
            }
        }
        let weighted = |mean: &Self| {
            let weight = if mean.incremental { mean.count } else { 1.0 } / count;
            Sum { sum: mean.sum.sum * weight, lost: mean.sum.lost * weight }
        };
        let mut sum = weighted(self);
        sum.add_all(weighted(&other));
        *self = Self { count, sum, incremental: true };
    }

    /// Returns the count and the parts of the sum, and whether the sum is a mean.
    pub(crate) fn parts(&self) -> ([f64; 3], bool) {
        ([self.count, self.sum.sum, self.sum.lost], self.incremental)
    }

    /// Returns the mean of its parts.
    pub(crate) fn of_parts([count, sum, lost]: [f64; 3], incremental: bool) -> Self {
        Self { count, sum: Sum { sum, lost }, incremental }
    }

    /// Returns the mean.
    pub(crate) fn mean(&self) -> f64 {
        if self.incremental {
            self.sum.total()
        } else if self.sum.sum.is_infinite() {
            self.sum.sum / self.count
        } else {
            self.sum.sum / self.count + self.sum.lost / self.count
        }
    }
}

/// The variance of a population, by Welford's method.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Variance {
    count: f64,
    mean: Sum,
    squares: Sum,
}

impl Variance {
    /// Adds a number several times.
    pub(crate) fn add(&mut self, value: f64, times: u32) {
        let times = f64::from(times);
        self.count += times;
        let delta = value - self.mean.total();
        self.mean.add(delta * (times / self.count));
        self.squares.add(delta * (value - self.mean.total()) * times);
    }

    /// Adds `count` numbers with this mean and second central moment, as in Chan et al.
    pub(crate) fn add_moment(&mut self, count: f64, mean: f64, m2: f64) {
        let delta = mean - self.mean.total();
        let before = self.count;
        self.count += count;
        self.mean.add(delta * (count / self.count));
        self.squares.add(m2);
        self.squares.add(delta * delta * (before * count / self.count));
    }

    /// Returns the population variance.
    pub(crate) fn variance(&self) -> f64 {
        self.squares.total() / self.count
    }
}

/// Returns the q-quantile with linear interpolation; NaN counts as the smallest value. Sorts the
/// values.
pub(crate) fn quantile(q: f64, values: &mut [f64]) -> f64 {
    values.sort_by(|left, right| ascending(*left, *right));
    interpolated(q, values.len() as u64, |rank| values[rank as usize])
}

/// Returns the q-quantile of values that occur several times.
pub(crate) fn weighted_quantile(q: f64, values: &mut [(f64, u32)]) -> f64 {
    values.sort_by(|left, right| ascending(left.0, right.0));
    let count = values.iter().map(|(_, times)| u64::from(*times)).sum();
    interpolated(q, count, |rank| {
        let mut before = 0;
        let found = values.iter().find(|(_, times)| {
            before += u64::from(*times);
            before > rank
        });
        found.map_or(f64::NAN, |(value, _)| *value)
    })
}

/// Interpolates a quantile of `count` values, given the value of each rank.
fn interpolated(q: f64, count: u64, value: impl Fn(u64) -> f64) -> f64 {
    if count == 0 || q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if q > 1.0 {
        return f64::INFINITY;
    }
    let rank = q * (count as f64 - 1.0);
    let lower = rank.floor().max(0.0) as u64;
    let upper = (lower + 1).min(count - 1);
    let weight = rank - rank.floor();
    value(lower) * (1.0 - weight) + value(upper) * weight
}

/// Compares values; NaN precedes all other values.
pub(crate) fn ascending(left: f64, right: f64) -> std::cmp::Ordering {
    match (left.is_nan(), right.is_nan()) {
        (false, false) => left.partial_cmp(&right).unwrap_or(std::cmp::Ordering::Equal),
        (left, right) => right.cmp(&left),
    }
}

/// Returns true when two numbers differ by less than a relative tolerance.
pub(crate) fn almost_equal(left: f64, right: f64, tolerance: f64) -> bool {
    if left == right || (left.is_nan() && right.is_nan()) {
        return true;
    }
    let size = left.abs() + right.abs();
    let difference = (left - right).abs();
    if left == 0.0 || right == 0.0 || size < f64::MIN_POSITIVE {
        return difference < tolerance * f64::MIN_POSITIVE;
    }
    difference / size.min(f64::MAX) < tolerance
}

/// Formats a number as Prometheus does in labels and messages: without an exponent.
pub(crate) fn text_of(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        value.to_string()
    }
}

/// Formats a number in its shortest form, with an exponent for very small and very large numbers,
/// as in `0.25` and `1e-05`.
pub(crate) fn short_text(value: f64) -> String {
    if value.is_finite() && value != 0.0 && !(1e-4..1e21).contains(&value.abs()) {
        return open_metrics_text(value);
    }
    text_of(value)
}

/// Formats a number as OpenMetrics does, and Prometheus in labels of quantiles: `1.0`, `0.25`,
/// `1e-05`.
pub(crate) fn open_metrics_text(value: f64) -> String {
    if !value.is_finite() {
        return text_of(value);
    }
    if value != 0.0 && !(1e-4..1e21).contains(&value.abs()) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) =
            exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    let text = value.to_string();
    if text.contains('.') { text } else { text + ".0" }
}

/// Returns the larger number. Infinity is larger than NaN, NaN is larger than other numbers, and 0
/// is larger than -0.
pub(crate) fn larger(left: f64, right: f64) -> f64 {
    if left == f64::INFINITY || right == f64::INFINITY {
        f64::INFINITY
    } else if left.is_nan() || right.is_nan() {
        f64::NAN
    } else if left.total_cmp(&right).is_lt() {
        right
    } else {
        left
    }
}

/// Returns the smaller number, in the order of [`larger`].
pub(crate) fn smaller(left: f64, right: f64) -> f64 {
    -larger(-left, -right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_means_keep_small_parts_and_survive_overflow() {
        let values = [1.0, 1e100, 1.0, -1e100];
        let mut sum = Sum::default();
        for value in values {
            sum.add(value);
        }
        assert_eq!(sum.total(), 2.0);
        let mean = |values: &[f64]| {
            let mut mean = Mean::default();
            for value in values {
                mean.add(*value);
            }
            mean.mean()
        };
        assert_eq!(mean(&values), 0.5);
        assert_eq!(mean(&[f64::MAX, f64::MAX]), f64::MAX);
        assert_eq!(mean(&[f64::INFINITY, 1.0]), f64::INFINITY);
        assert!(mean(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        let mut merged = Mean::default();
        merged.add_sum(6.0, 3.0);
        merged.add_sum(2.0, 1.0);
        assert_eq!(merged.mean(), 2.0);
    }

    #[test]
    fn infinity_is_larger_than_nan_and_zero_is_larger_than_negative_zero() {
        assert_eq!(larger(f64::NAN, f64::INFINITY), f64::INFINITY);
        assert_eq!(smaller(f64::NEG_INFINITY, f64::NAN), f64::NEG_INFINITY);
        assert!(larger(f64::NEG_INFINITY, f64::NAN).is_nan() && smaller(1.0, f64::NAN).is_nan());
        assert_eq!([larger(-2.0, -3.0), smaller(-2.0, -3.0)], [-2.0, -3.0]);
        assert!(larger(-0.0, 0.0).is_sign_positive() && smaller(0.0, -0.0).is_sign_negative());
    }

    #[test]
    fn quantiles_variances_and_texts_of_numbers_are_exact() {
        for (q, expected) in [(0.5, 2.0), (0.25, 1.5), (1.0, 3.0), (2.0, f64::INFINITY)] {
            assert_eq!(quantile(q, &mut [3.0, 1.0, 2.0]), expected);
        }
        assert!(quantile(0.5, &mut []).is_nan());
        let mut variance = Variance::default();
        for value in [1.0, 3.0] {
            variance.add(value, 1);
        }
        assert_eq!(variance.variance(), 1.0);
        let mut several = Variance::default();
        several.add(1.0, 3);
        several.add(5.0, 1);
        assert_eq!(several.variance(), 3.0);
        for (q, expected) in [(0.0, 1.0), (0.5, 1.5), (0.75, 2.75), (1.0, 5.0)] {
            let found = weighted_quantile(q, &mut [(5.0, 1), (2.0, 1), (1.0, 2)]);
            assert_eq!(found, expected, "{q}");
        }
        assert!(almost_equal(1.0, 1.0 + 1e-13, 1e-12) && !almost_equal(1.0, 1.1, 1e-12));
        for (value, text) in [(1.0, "1.0"), (0.0, "0.0"), (0.25, "0.25"), (1e-5, "1e-05")] {
            assert_eq!(open_metrics_text(value), text);
        }
        assert_eq!([text_of(1e21), text_of(0.5)], ["1000000000000000000000", "0.5"]);
    }
}
