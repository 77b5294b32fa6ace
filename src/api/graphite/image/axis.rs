//! The axes of an image: ranges, positions and round numbers.
//!
//! Must never know: pixels.

use crate::query::Line;

/// The range of an axis.
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Axis {
    fn of(numbers: impl Iterator<Item = f64>) -> Self {
        let widest = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) =
            numbers.fold(widest, |(low, high), number| (low.min(number), high.max(number)));
        match low < high {
            true => Self { low, high },
            // One value is in the middle; without one, the axis goes from 0 to 1.
            false if low.is_finite() => Self { low: low - 1.0, high: low + 1.0 },
            false => Self { low: 0.0, high: 1.0 },
        }
    }

    pub(super) fn of_values(lines: &[Line]) -> Self {
        let values = lines.iter().flat_map(|line| line.values.iter().copied());
        Self::of(values.filter(|value| value.is_finite()))
    }

    pub(super) fn of_times(lines: &[Line]) -> Self {
        Self::of(lines.iter().flat_map(|line| [line.start as f64, line.end() as f64]))
    }

    /// Returns the position of a number: 0 at the low end, 1 at the high end.
    pub(super) fn position(&self, number: f64) -> f64 {
        ((number - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Returns round numbers of the axis, two to seven of them, with their labels.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let rough = (self.high - self.low) / 6.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
        let is_step = |step: &f64| *step >= rough && step.is_finite();
        let Some(step) = step.into_iter().find(is_step) else { return Vec::new() };
        let first = (self.low / step).ceil();
        let ticks = (0..8).map(|index| (first + f64::from(index)) * step);
        ticks.filter(|tick| *tick <= self.high).map(|tick| (tick, label(tick, step))).collect()
    }
}

/// Returns a number with a prefix of SI, and as many digits as steps need.
fn label(number: f64, step: f64) -> String {
    const PREFIXES: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let prefix = PREFIXES.into_iter().find(|(factor, _)| number.abs() >= *factor);
    let (factor, prefix) = prefix.unwrap_or((1.0, ""));
    let digits = (-(step / factor).log10().floor()).clamp(0.0, 6.0) as usize;
    // No label is "-0".
    format!("{:.digits$}{prefix}", number / factor + 0.0)
}

#[cfg(test)]
mod tests;
