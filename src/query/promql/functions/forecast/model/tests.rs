//! Tests of the model: against the textbook form, simulated series, and disks that are cleaned.

use proptest::prelude::*;

use super::*;

/// Pseudo-random numbers of a seed; their sum is close to a standard normal distribution.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Solves linear equations by elimination; the last column is the right side.
fn solved(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let n = rows.len();
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))
            .unwrap();
        rows.swap(column, pivot);
        for row in 0..n {
            let factor = rows[row][column] / rows[column][column];
            if row != column {
                let pivot = rows[column].clone();
                for (value, above) in rows[row].iter_mut().zip(pivot).skip(column) {
                    *value -= factor * above;
                }
            }
        }
    }
    (0..n).map(|row| rows[row][n] / rows[row][row]).collect()
}

/// The least squares of one indicator per phase and the step, by the normal equations.
fn naive_regression(values: &[Option<f64>], length: usize) -> Vec<f64> {
    let mut rows = vec![vec![0.0; length + 2]; length + 1];
    for (step, value) in values.iter().enumerate() {
        let Some(value) = value else { continue };
        let mut inputs = vec![0.0; length + 2];
        inputs[step % length] = 1.0;
        (inputs[length], inputs[length + 1]) = (step as f64, *value);
        for row in 0..=length {
            for column in 0..length + 2 {
                rows[row][column] += inputs[row] * inputs[column];
            }
        }
    }
    solved(rows)
}

/// The smoothing of the textbook: each component is a mean of its old and its observed value.
fn naive_smoothing(start: &State, values: &[f64], factors: Factors) -> (State, f64) {
    let State { mut level, mut slope, mut season } = start.clone();
    let slope_part = factors.slope / factors.level;
    let season_part = factors.season / (1.0 - factors.level);
    let mut squares = 0.0;
    for (step, value) in values.iter().enumerate() {
        let at = step % season.len();
        squares += (value - level - slope - season[at]).powi(2);
        let before = level;
        level = factors.level * (value - season[at]) + (1.0 - factors.level) * (before + slope);
        let observed_season = value - level;
        slope = slope_part * (level - before) + (1.0 - slope_part) * slope;
        season[at] = season_part * observed_season + (1.0 - season_part) * season[at];
    }
    (State { level, slope, season }, squares)
}

proptest! {
    #[test]
    fn the_regression_solves_the_normal_equations(
        values in prop::collection::vec(prop::option::weighted(0.9, -50.0..50.0_f64), 40..80),
        length in 1..5_usize,
    ) {
        let found = Regression::of(&values, length).unwrap();
        let expected = naive_regression(&values, length);
        prop_assert!((found.slope - expected[length]).abs() < 1e-8);
        for (constant, expected) in found.constants.iter().zip(&expected) {
            prop_assert!((constant - expected).abs() < 1e-6, "{constant} {expected}");
        }
    }

    #[test]
    fn the_recursion_is_that_of_the_textbook(
        values in prop::collection::vec(-50.0..50.0_f64, 30..60),
        level in 0.05..0.95_f64, slope in 0.0..1.0_f64, season in 0.0..1.0_f64,
    ) {
        let start = State { level: 3.0, slope: 0.5, season: vec![1.0, -4.0, 3.0] };
        let factors = Factors { level, slope: level * slope, season: (1.0 - level) * season };
        let present: Vec<_> = values.iter().copied().map(Some).collect();
        let (found, squares) = smoothed(start.clone(), &present, factors);
        let (expected, naive_squares) = naive_smoothing(&start, &values, factors);
        prop_assert!((found.level - expected.level).abs() < 1e-6);
        prop_assert!((found.slope - expected.slope).abs() < 1e-6);
        prop_assert!((squares - naive_squares).abs() < 1e-6 * squares);
        for (found, expected) in found.season.iter().zip(&expected.season) {
            prop_assert!((found - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn a_trend_with_a_season_continues_exactly(
        slope in -2.0..2.0_f64, season in prop::collection::vec(-20.0..20.0_f64, 24),
        gap in 30..60_usize,
    ) {
        let value = |step: usize| 100.0 + slope * step as f64 + season[step % 24];
        let missing = |step: &usize| (gap..gap + 5).contains(step);
        let values: Vec<_> =
            (0..120).map(|step| (!missing(&step)).then(|| value(step))).collect();
        let model = Model::fit(&values, &[24]).unwrap();
        for ahead in [0, 1, 13, 100] {
            let found = model.quantile_at(ahead as f64, 0.9).unwrap();
            prop_assert!((found - value(119 + ahead)).abs() < 1e-6, "{ahead} {found}");
        }
    }
}

/// Returns the share of seeds for which the value `ahead` steps later is in the band of 80 %.
fn coverage(ahead: usize, series: &dyn Fn(&mut Noise, usize) -> Vec<f64>) -> f64 {
    let inside = (1..=200).filter(|seed| {
        let values = series(&mut Noise(seed * 7919), 336 + ahead);
        let known: Vec<_> = values[..336].iter().copied().map(Some).collect();
        let model = Model::fit(&known, &[24, 168]).unwrap();
        let [low, high] = [0.1, 0.9].map(|q| model.quantile_at(ahead as f64, q).unwrap());
        (low..=high).contains(&values[335 + ahead])
    });
    inside.count() as f64 / 200.0
}

#[test]
fn the_band_contains_as_many_values_as_it_claims() {
    let seasonal = |noise: &mut Noise, count| {
        let season = |step: usize| 30.0 * (std::f64::consts::TAU * step as f64 / 24.0).sin();
        (0..count).map(|step| step as f64 + season(step) + 4.0 * noise.normal()).collect()
    };
    let walk = |noise: &mut Noise, count| {
        let mut at = 0.0;
        let mut next = |_| {
            at += 0.5 + noise.normal();
            at
        };
        (0..count).map(&mut next).collect()
    };
    for ahead in [1, 24, 168] {
        let found = [coverage(ahead, &seasonal), coverage(ahead, &walk)];
        assert!(found.iter().all(|share| (0.7..0.92).contains(share)), "{ahead}: {found:?}");
    }
}

#[test]
fn quantiles_of_the_time_are_in_order_and_meet_the_values() {
    let mut noise = Noise(5);
    for sign in [1.0, -1.0] {
        let values: Vec<_> =
            (0..400).map(|step| Some(sign * (f64::from(step) + 6.0 * noise.normal()))).collect();
        let model = Model::fit(&values, &[24]).unwrap();
        let [early, median, late] =
            [0.1, 0.5, 0.9].map(|q| model.horizon_of(sign * 600.0, q).unwrap());
        assert!(early < median && median < late, "{early} {median} {late}");
        assert!((median - 201.0).abs() < 10.0, "{median}");
        // The value that is reached early with a probability of 0.1 exceeds the level with it.
        let quantile = if sign > 0.0 { 0.9 } else { 0.1 };
        let value = model.quantile_at(early, quantile).unwrap();
        assert!((value - sign * 600.0).abs() < 1.0, "{value}");
        assert_eq!(model.horizon_of(sign * 1000.0, 0.5), None, "further ahead than behind");
        assert_eq!(model.horizon_of(sign * -300.0, 0.5), None, "the other direction");
    }
}

#[test]
fn too_few_values_have_no_forecast() {
    assert!(Model::fit(&[Some(1.0); 7], &[24]).is_none());
    let model = Model::fit(&[Some(1.0); 8], &[24]).unwrap();
    assert_eq!(model.quantile_at(1e3, 0.1), Some(1.0));
    assert_eq!(model.quantile_at(f64::NAN, 0.1), None);
    assert_eq!(model.quantile_at(1e9, 0.1), None);
    assert_eq!(model.horizon_of(2.0, 0.5), None);
}
