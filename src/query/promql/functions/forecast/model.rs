//! A trend with a season and its band: exponential smoothing with additive errors, trend and season
//! (Holt and Winters; Hyndman and Athanasopoulos, Forecasting: Principles and Practice, chapter 8).
//!
//! A regression over all steps with one constant per phase of the season gives the first level, the
//! slope and the season. It also selects the season (none, a day or a week) by the least error of
//! generalized cross-validation. The recursion of the smoothing then follows the values; its three
//! factors are searched one after the other. Must never know: times, windows.

use super::super::normal::inverse_normal;

/// The minimum number of steps with values.
const VALUES_MIN: usize = 8;
/// The maximum number of steps ahead.
const HORIZON_MAX: f64 = 20_000.0;
/// The factors of the level that are tried: its change by an error of 1.
const LEVELS: [f64; 8] = [0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0];
/// The factors of the slope that are tried, as parts of the level's factor.
const SLOPES: [f64; 5] = [0.0, 0.002, 0.01, 0.05, 0.2];
/// The factors of the season that are tried, as parts of 1 minus the level's factor.
const SEASONS: [f64; 4] = [0.0, 0.05, 0.15, 0.4];
/// A further factor must reduce the squared errors by this number, divided by the number of values.
const WORTH: f64 = 6.0;

/// A fitted model; a horizon is a number of steps after the last one.
#[derive(Debug)]
pub(super) struct Model {
    state: State,
    factors: Factors,
    /// The number of steps up to the last one.
    steps: usize,
    /// Variance of the errors one step ahead.
    variance: f64,
    /// The number of values.
    n: f64,
    /// The mean step of the values, and the sum of the squared distances from it in each phase.
    middle: f64,
    distances: f64,
}

/// The smoothed level and slope, and the season by phase.
#[derive(Debug, Clone)]
struct State {
    level: f64,
    slope: f64,
    season: Vec<f64>,
}

/// The changes of level, slope and season by an error of 1.
#[derive(Debug, Clone, Copy, Default)]
struct Factors {
    level: f64,
    slope: f64,
    season: f64,
}

/// A regression with one slope, and a constant for each phase.
struct Regression {
    slope: f64,
    constants: Vec<f64>,
    n: f64,
    middle: f64,
    distances: f64,
    squares: f64,
    /// The number of parameters.
    parameters: f64,
}

impl Model {
    /// Fits a model to the values of steps; `seasons` are the possible lengths of a season. Returns
    /// `None` when there are too few values.
    pub(super) fn fit(values: &[Option<f64>], seasons: &[usize]) -> Option<Self> {
        if values.iter().flatten().count() < VALUES_MIN {
            return None;
        }
        let fits = |season: &&usize| **season * 2 <= values.len();
        let mut best = Regression::of(values, 1)?;
        for season in seasons.iter().filter(fits) {
            let found = Regression::of(values, *season);
            if let Some(found) = found.filter(|found| found.error() < best.error()) {
                best = found;
            }
        }
        let start = best.state();
        let factors = searched(&start, values, best.n);
        let (state, squares) = smoothed(start, values, factors);
        Some(Self {
            state,
            factors,
            steps: values.len(),
            variance: squares / (best.n - best.parameters),
            n: best.n,
            middle: best.middle,
            distances: best.distances,
        })
    }

    /// Returns the quantile of the value at a horizon; `None` beyond the largest horizon.
    pub(super) fn quantile_at(&self, horizon: f64, quantile: f64) -> Option<f64> {
        if horizon.is_nan() || horizon > HORIZON_MAX {
            return None;
        }
        let distance = inverse_normal(quantile);
        if horizon < 0.0 {
            let now = self.mean(0) + horizon * self.state.slope;
            return Some(now + product(distance, self.variance.sqrt()));
        }
        let (before, after) = (horizon.floor(), horizon.ceil());
        let mut spread = self.spread();
        let mut at_step = |step: usize| self.mean(step) + product(distance, spread(step));
        let from = at_step(before as usize);
        let to = if after > before { at_step(after as usize) } else { from };
        Some(from + (to - from) * (horizon - before))
    }

    /// Returns the horizon at which the value reaches a level, as a quantile of that time; `None`
    /// when it is further ahead than there are steps behind.
    pub(super) fn horizon_of(&self, level: f64, quantile: f64) -> Option<f64> {
        let now = self.mean(0);
        let away = level - now;
        if away == 0.0 {
            return Some(0.0);
        }
        // An early time is that of a value near the level: the upper values when it is above.
        let distance = inverse_normal(quantile) * -away.signum();
        let (mut spread, mut before) = (self.spread(), now);
        for step in 1..=self.steps {
            let value = self.mean(step) + product(distance, spread(step));
            if (level - value) * away.signum() <= 0.0 {
                return Some((step - 1) as f64 + (level - before) / (value - before));
            }
            before = value;
        }
        None
    }

    fn mean(&self, ahead: usize) -> f64 {
        let State { level, slope, season } = &self.state;
        level + slope * ahead as f64 + season[(self.steps - 1 + ahead) % season.len()]
    }

    /// Returns a function of ascending steps ahead: the standard deviation of the error there. It
    /// contains the errors between, which the level, the slope and the season follow, and the
    /// errors of the regression's constant and slope.
    fn spread(&self) -> impl FnMut(usize) -> f64 {
        let Factors { level, slope, season } = self.factors;
        let (length, n, variance) = (self.state.season.len(), self.n, self.variance);
        let behind = (self.steps - 1) as f64 - self.middle;
        let distances = self.distances;
        let (mut summed, mut followed) = (1, 0.0);
        move |ahead| {
            while summed < ahead {
                let again = if length > 1 && summed % length == 0 { season } else { 0.0 };
                followed += (level + slope * summed as f64 + again).powi(2);
                summed += 1;
            }
            let ahead = ahead as f64;
            let of_slope = (behind + ahead).powi(2) / distances + (level * ahead).powi(2) / n;
            (variance * (1.0 + followed + 1.0 / n + of_slope)).sqrt()
        }
    }
}

/// Returns the product, which is 0 without a deviation.
fn product(distance: f64, deviation: f64) -> f64 {
    if deviation > 0.0 { distance * deviation } else { 0.0 }
}

impl Regression {
    /// Returns the regression with a season of this length; `None` when too few values are left to
    /// estimate its error.
    fn of(values: &[Option<f64>], length: usize) -> Option<Self> {
        let points = || (0..).zip(values).filter_map(|(step, value)| Some((step, (*value)?)));
        // Sums of count, step and value by phase.
        let mut sums = vec![[0.0; 3]; length];
        for (step, value) in points() {
            for (sum, add) in sums[step % length].iter_mut().zip([1.0, step as f64, value]) {
                *sum += add;
            }
        }
        let phases = sums.iter().filter(|[n, ..]| *n > 0.0).count() as f64;
        let [n, x] = [0, 1].map(|index| sums.iter().map(|sum| sum[index]).sum::<f64>());
        let means: Vec<_> = sums.iter().map(|[n, x, y]| (x / n, y / n)).collect();
        let (mut distances, mut products) = (0.0, 0.0);
        for (step, value) in points() {
            let (x, y) = means[step % length];
            distances += (step as f64 - x).powi(2);
            products += (step as f64 - x) * (value - y);
        }
        if n < 2.0 * phases + 1.0 || distances <= 0.0 {
            return None;
        }
        let slope = products / distances;
        let constants: Vec<_> = means.iter().map(|(x, y)| y - slope * x).collect();
        let error = |(step, value): (usize, f64)| {
            (value - constants[step % length] - slope * step as f64).powi(2)
        };
        let squares = points().map(error).sum();
        let (middle, parameters) = (x / n, phases + 1.0);
        Some(Self { slope, constants, n, middle, distances, squares, parameters })
    }

    /// Returns the error of generalized cross-validation.
    fn error(&self) -> f64 {
        self.n * self.squares / (self.n - self.parameters).powi(2)
    }

    /// Returns the state before the first step.
    fn state(&self) -> State {
        let known = || self.constants.iter().filter(|constant| constant.is_finite());
        let level = known().sum::<f64>() / known().count() as f64;
        // A phase without values has the mean of the others.
        let season = |constant: &f64| if constant.is_finite() { constant - level } else { 0.0 };
        let season = self.constants.iter().map(season).collect();
        State { level: level - self.slope, slope: self.slope, season }
    }
}

/// Returns the state after the last value, and the sum of the squared errors one step ahead.
fn smoothed(mut state: State, values: &[Option<f64>], factors: Factors) -> (State, f64) {
    let (mut squares, length) = (0.0, state.season.len());
    for (step, value) in values.iter().enumerate() {
        state.level += state.slope;
        let season = &mut state.season[step % length];
        if let Some(value) = value {
            let error = value - state.level - *season;
            state.level += factors.level * error;
            state.slope += factors.slope * error;
            *season += factors.season * error;
            squares += error * error;
        }
    }
    (state, squares)
}

/// Returns the factors with the smallest errors: that of the level, then of slope and season.
fn searched(start: &State, values: &[Option<f64>], n: f64) -> Factors {
    let squares = |factors| smoothed(start.clone(), values, factors).1;
    let mut best = (Factors::default(), squares(Factors::default()));
    let mut search = |tried: &dyn Fn(Factors) -> Vec<Factors>| {
        let worth = best.1 / (1.0 + WORTH / n);
        let found = tried(best.0).into_iter().map(|factors| (factors, squares(factors)));
        let found = found.min_by(|one, other| one.1.total_cmp(&other.1));
        if let Some(found) = found.filter(|found| found.1 < worth) {
            best = found;
        }
    };
    search(&|best| LEVELS[1..].iter().map(|level| Factors { level: *level, ..best }).collect());
    search(&|best| {
        let slopes = SLOPES[1..].iter().filter(|_| best.level > 0.0);
        slopes.map(|part| Factors { slope: best.level * part, ..best }).collect()
    });
    if start.season.len() > 1 {
        search(&|best| {
            let season = |part: &f64| Factors { season: (1.0 - best.level) * part, ..best };
            SEASONS[1..].iter().map(season).collect()
        });
    }
    best.0
}

#[cfg(test)]
mod tests;
