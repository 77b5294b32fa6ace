//! The score of a series: by how much its values during a stretch differ from the values before.
//!
//! Must never know: series, slots, the store.

/// Fewest values on each side for a comparison.
pub(super) const VALUES_MIN: usize = 3;
/// The score of a series with values on one side only. It ranks below series that clearly moved,
/// because series also begin and end with each restart of a container.
const ONE_SIDED_SCORE: f64 = 5.0;
/// Series with a lower score did not move.
pub(super) const SCORE_MIN: f64 = 1.0;
/// Largest number of typical deviations. The order of larger ones depends on noise.
const DEVIATIONS_MAX: f64 = 1000.0;
/// The typical deviation of normally distributed values, in units of their median deviation.
const DEVIATION_OF_MEDIAN: f64 = 1.4826;
/// Smallest typical deviation, as a part of the value: a constant series may move by a rounding.
const DEVIATION_MIN: f64 = 0.01;

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Change {
    /// The rank of the series; higher is a clearer move.
    pub(super) score: f64,
    /// The median before the stretch.
    pub(super) before: Option<f64>,
    /// The mean during the stretch.
    pub(super) during: Option<f64>,
}

/// Compares finite values before and during a stretch; both are sorted in place.
///
/// The score is the distance of the mean during the stretch from the median before, in units of the
/// typical deviation before, times the square of the separation. The separation is 1 when all
/// values during the stretch are on one side of all values before, and 0 when neither side is
/// larger, so occasional spikes on both sides do not count as a move.
pub(super) fn compare(before: &mut [f64], during: &mut [f64]) -> Change {
    before.sort_unstable_by(f64::total_cmp);
    during.sort_unstable_by(f64::total_cmp);
    let (median, mean) = (median(before), mean(during));
    let change = |score| Change { score, before: median, during: mean };
    let is_enough = |values: &[f64]| values.len() >= VALUES_MIN;
    match (median, mean) {
        (None, Some(_)) if is_enough(during) => change(ONE_SIDED_SCORE),
        (Some(_), None) if is_enough(before) => change(ONE_SIDED_SCORE),
        (Some(median), Some(mean)) if is_enough(before) && is_enough(during) => {
            let separation = separation(before, during);
            for value in before.iter_mut() {
                *value = (*value - median).abs();
            }
            before.sort_unstable_by(f64::total_cmp);
            let deviation = self::median(before).unwrap_or_default() * DEVIATION_OF_MEDIAN;
            let deviation = deviation.max(DEVIATION_MIN * median.abs().max(mean.abs()));
            let deviations = ((mean - median).abs() / deviation).min(DEVIATIONS_MAX);
            let score = deviations * separation * separation;
            // Without a deviation, both are zero.
            change(if score.is_finite() { score } else { 0.0 })
        }
        _ => change(0.0),
    }
}

/// Returns the median of sorted values.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get(sorted.len().saturating_sub(1) / 2)?;
    Some(lower / 2.0 + upper / 2.0)
}

fn mean(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    mean.is_finite().then_some(mean)
}

/// Returns the probability that a value of one side is larger, minus the opposite probability
/// (Cliff's delta), without its sign. Both sides are sorted.
fn separation(before: &[f64], during: &[f64]) -> f64 {
    let (mut smaller, mut not_larger, mut sum) = (0, 0, 0_i64);
    for value in during {
        while before.get(smaller).is_some_and(|other| other < value) {
            smaller += 1;
        }
        while before.get(not_larger).is_some_and(|other| other <= value) {
            not_larger += 1;
        }
        sum += smaller as i64 - (before.len() - not_larger) as i64;
    }
    (sum as f64 / (before.len() * during.len()) as f64).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(before: &[f64], during: &[f64]) -> f64 {
        compare(&mut before.to_vec(), &mut during.to_vec()).score
    }

    /// Values that scatter around a level, different for each seed.
    fn scattered(level: f64, seed: u32) -> Vec<f64> {
        (0..20_u32)
            .map(|k| level + f64::from((k * 7919 + seed * 104_729) % 101) / 50.0 - 1.0)
            .collect()
    }

    #[test]
    fn a_step_scores_higher_than_noise_and_in_proportion_to_its_size() {
        let before = scattered(10.0, 1);
        assert!(score(&before, &scattered(10.0, 2)) < SCORE_MIN);
        let (small, large) =
            (score(&before, &scattered(14.0, 3)), score(&before, &scattered(30.0, 3)));
        assert!(SCORE_MIN < small && small < large, "{small} {large}");
        assert!(score(&before, &scattered(-10.0, 3)) > small, "a fall counts, too");
    }

    #[test]
    fn an_outlier_before_does_not_hide_a_move_and_spikes_on_both_sides_are_none() {
        let mut before = scattered(10.0, 1);
        before[3] = 1e9;
        assert!(score(&before, &scattered(30.0, 2)) > 5.0);
        let spikes = |at: usize| {
            let mut values = vec![0.0; 20];
            values[at] = 50.0;
            values
        };
        assert!(score(&spikes(2), &spikes(9)) < SCORE_MIN);
    }

    #[test]
    fn a_short_burst_of_errors_is_a_move() {
        let mut during = vec![0.0; 12];
        during[4..10].fill(20.0);
        assert!(score(&[0.0; 12], &during) > SCORE_MIN);
    }

    #[test]
    fn a_constant_moves_by_more_than_a_rounding() {
        let change = compare(&mut [100.0; 5], &mut [100.5; 5]);
        assert!(change.score < SCORE_MIN, "{change:?}");
        assert_eq!((change.before, change.during), (Some(100.0), Some(100.5)));
        assert!(score(&[100.0; 5], &[110.0; 5]) > 5.0);
        assert_eq!(score(&[0.0; 5], &[0.0; 5]), 0.0);
    }

    #[test]
    fn series_that_begin_or_end_have_a_fixed_score_and_few_values_none() {
        assert_eq!(score(&[], &[1.0; 3]), ONE_SIDED_SCORE);
        assert_eq!(score(&[1.0; 3], &[]), ONE_SIDED_SCORE);
        assert_eq!(score(&[], &[1.0; 2]), 0.0);
        assert_eq!(score(&[1.0; 2], &[9.0; 9]), 0.0);
        assert_eq!(score(&[], &[]), 0.0);
    }

    #[test]
    fn extreme_values_have_a_finite_score() {
        for (before, during) in
            [([f64::MAX; 4], [f64::MIN; 4]), ([0.0; 4], [f64::MAX; 4]), ([5e-324; 4], [0.0; 4])]
        {
            let change = score(&before, &during);
            assert!(change.is_finite() && change >= 0.0, "{change}");
        }
    }
}
