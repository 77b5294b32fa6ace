//! The inverse of the normal distribution.
//!
//! Must never know: windows, functions.

/// Returns the standard score of a quantile, with an error below 0.00045 (Abramowitz and Stegun,
/// Handbook of Mathematical Functions, 26.2.23). Quantiles up to 0 and from 1 are infinite.
pub(super) fn inverse_normal(quantile: f64) -> f64 {
    if quantile.is_nan() {
        return f64::NAN;
    }
    if quantile <= 0.0 || quantile >= 1.0 {
        return if quantile <= 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    if quantile == 0.5 {
        return 0.0;
    }
    let tail = quantile.min(1.0 - quantile);
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let score = t - above / below;
    if quantile < 0.5 { -score } else { score }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_those_of_the_table() {
        for (quantile, score) in [(0.5, 0.0), (0.9, 1.2816), (0.1, -1.2816), (0.975, 1.96)] {
            assert!((inverse_normal(quantile) - score).abs() < 0.00045, "{quantile}");
        }
        assert_eq!(inverse_normal(0.0), f64::NEG_INFINITY);
        assert_eq!(inverse_normal(2.0), f64::INFINITY);
        assert!(inverse_normal(f64::NAN).is_nan());
    }
}
