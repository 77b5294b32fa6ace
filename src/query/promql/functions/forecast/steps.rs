//! The means of equal time steps of a window.
//!
//! Must never know: the model.

use crate::{
    model::Kind,
    policy::query_plan::CUT_SLOTS_MIN,
    query::promql::value::{portion::Portion, windows::Window},
};

const SECOND_MS: i64 = 1000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// The widths of a step, the widest first. Most are widths of slots.
const WIDTHS_MS: [i64; 6] = [DAY_MS, HOUR_MS, 5 * MINUTE_MS, MINUTE_MS, 10 * SECOND_MS, SECOND_MS];
/// The maximum number of steps; a longer window has steps of several days.
const STEPS_MAX: i64 = 2000;

/// The means of equal time steps, from the first to the last step that has samples.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) width_ms: i64,
    /// The mean of each step; `None` without samples.
    pub(super) means: Vec<Option<f64>>,
    /// The middle of the last step, Unix milliseconds.
    last_at: f64,
}

/// The samples of one step.
#[derive(Debug, Clone, Copy, Default)]
struct Samples {
    n: f64,
    /// Sum of the times after the window's start, in milliseconds.
    times: f64,
    values: f64,
}

impl Steps {
    /// Returns the steps of a window; `None` when it has no finite values.
    pub(super) fn of_window(window: &Window<'_>) -> Option<Self> {
        let width_ms = width_of(window.range_ms());
        let first = window.frame.from.div_euclid(width_ms);
        let count = window.frame.to.div_euclid(width_ms) - first + 1;
        let origin = first.saturating_mul(width_ms);
        let mut all = vec![Samples::default(); usize::try_from(count).ok()?];
        for portion in window.portions() {
            let (n, sum) = (f64::from(portion.count()), sum_of(&portion, window));
            let at = f64::midpoint(portion.first().at, portion.last().at) - origin as f64;
            let samples = all.get_mut((at / width_ms as f64) as usize);
            if let Some(samples) = samples.filter(|_| sum.is_finite()) {
                samples.n += n;
                samples.times += n * at;
                samples.values += sum;
            }
        }
        let start = all.iter().position(|samples| samples.n > 0.0)?;
        let end = all.iter().rposition(|samples| samples.n > 0.0)? + 1;
        let middle = |index: usize| (index as f64 + 0.5) * width_ms as f64;
        let slope = slope_of(&all);
        let mean = |(index, samples): (usize, &Samples)| {
            // Samples that are not spread over the whole step, as in the current one, are moved to
            // its middle along the line through all of them.
            let off = middle(index) - samples.times / samples.n;
            (samples.n > 0.0).then(|| samples.values / samples.n + slope * off)
        };
        let means = all.iter().enumerate().skip(start).take(end - start).map(mean).collect();
        Some(Self { width_ms, means, last_at: origin as f64 + middle(end - 1) })
    }

    /// Returns the number of steps from the last one to a time in Unix milliseconds.
    pub(super) fn horizon_of(&self, at: f64) -> f64 {
        (at - self.last_at) / self.width_ms as f64
    }

    /// Returns the time of a horizon, Unix milliseconds.
    pub(super) fn time_of(&self, horizon: f64) -> f64 {
        self.last_at + horizon * self.width_ms as f64
    }
}

/// Returns the numbers of steps of a day and a week, if steps of this width divide them.
pub(super) fn seasons(width_ms: i64) -> Vec<usize> {
    let seasons = [DAY_MS, 7 * DAY_MS].into_iter();
    let steps = seasons.filter(|length| length % width_ms == 0).map(|length| length / width_ms);
    steps.filter(|count| (2..=STEPS_MAX / 2).contains(count)).map(|count| count as usize).collect()
}

fn width_of(range_ms: i64) -> i64 {
    let fits = |width_ms: &i64| *width_ms <= range_ms / CUT_SLOTS_MIN;
    let width_ms = WIDTHS_MS.into_iter().find(fits).unwrap_or(SECOND_MS);
    // Only steps of a day can be that many.
    width_ms.saturating_mul(range_ms / (width_ms * STEPS_MAX) + 1)
}

/// Returns the sum of the values; the readings of a counter are assumed to be on a line.
fn sum_of(portion: &Portion<'_>, window: &Window<'_>) -> f64 {
    match window.kind_of(portion.cell).of_counts() {
        Kind::Counter => {
            let middle = f64::midpoint(portion.first().value, portion.last().value);
            f64::from(portion.count()) * middle
        }
        Kind::Gauge
        | Kind::Delta
        | Kind::Histogram
        | Kind::GaugeHistogram
        | Kind::DeltaHistogram => portion.sum(),
    }
}

/// Returns the slope per millisecond of the line through the means, by least squares.
fn slope_of(all: &[Samples]) -> f64 {
    let points = || {
        let present = all.iter().filter(|samples| samples.n > 0.0);
        present.map(|samples| (samples.times / samples.n, samples.values / samples.n))
    };
    let n = points().count() as f64;
    let (x, y) = points().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
    let (xy, xx) = points().fold((0.0, 0.0), |(xy, xx), point| {
        let off = point.0 - x;
        (xy + off * (point.1 - y), xx + off * off)
    });
    if xx > 0.0 { xy / xx } else { 0.0 }
}
