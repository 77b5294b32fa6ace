//! Functions of extended selectors, and the values of smoothed selectors.
//!
//! The first sample of an anchored window is the newest sample at or before its start. A smoothed
//! window interpolates the values at its edges from the samples on either side. Both use the known
//! samples: the first and the last of a merged cell. Must never know: the store, the tree.

use crate::query::QueryError;
use crate::query::promql::value::{cells::Sample, series::ABSENT, windows::Extension};

const ANCHORED_FUNCTIONS: [&str; 5] = ["changes", "delta", "increase", "rate", "resets"];
const SMOOTHED_FUNCTIONS: [&str; 3] = ["delta", "increase", "rate"];

/// A function of extended windows.
pub(crate) struct ExtendedFunction<'a> {
    name: &'a str,
    range_ms: i64,
    is_smoothed: bool,
}

impl<'a> ExtendedFunction<'a> {
    /// Returns the function with a name for windows of a length.
    ///
    /// # Errors
    /// When the function does not support this extension.
    pub(crate) fn new(
        name: &'a str,
        extension: Extension,
        range_ms: i64,
    ) -> Result<Self, QueryError> {
        let (modifier, functions) = match extension {
            Extension::Anchored => ("anchored", &ANCHORED_FUNCTIONS[..]),
            Extension::Smoothed => ("smoothed", &SMOOTHED_FUNCTIONS[..]),
        };
        if !functions.contains(&name) {
            return Err(QueryError::Execution(format!(
                "{modifier} modifier can only be used with: {} - not with {name}",
                functions.join(", ")
            )));
        }
        Ok(Self { name, range_ms, is_smoothed: extension == Extension::Smoothed })
    }

    /// Evaluates the window that ends at a time, from the samples in and around the window.
    pub(crate) fn value(&self, samples: &[Sample], to: i64) -> f64 {
        let window = Edges { from: to - self.range_ms, to, smoothed: self.is_smoothed };
        let value = match self.name {
            "changes" => window.count_pairs(samples, |earlier, later| {
                earlier != later && !(earlier.is_nan() && later.is_nan())
            }),
            "resets" => window.count_pairs(samples, |earlier, later| later < earlier),
            "delta" => window.growth(samples, false),
            "rate" => {
                window.growth(samples, true).map(|growth| growth * 1000.0 / self.range_ms as f64)
            }
            _ => window.growth(samples, true),
        };
        value.unwrap_or(ABSENT)
    }
}

/// Returns the value of a smoothed selector, interpolated between the samples on either side of a
/// time.
pub(crate) fn smoothed_at(samples: &[Sample], at: i64) -> f64 {
    let next = samples.partition_point(|sample| sample.0 < at);
    match (next.checked_sub(1).map(|before| samples[before]), samples.get(next)) {
        (_, Some(sample)) if sample.0 == at => sample.1,
        (Some(earlier), Some(later)) => interpolated(earlier, *later, at, false),
        (Some(earlier), None) => earlier.1,
        (None, Some(next)) => next.1,
        (None, None) => ABSENT,
    }
}

/// Interpolates between two samples. A counter that was reset between them begins at 0.
fn interpolated(earlier: Sample, later: Sample, at: i64, counter: bool) -> f64 {
    let base = if counter && later.1 < earlier.1 { 0.0 } else { earlier.1 };
    base + (later.1 - base) * (at - earlier.0) as f64 / (later.0 - earlier.0) as f64
}

/// The edges of a window whose samples extend beyond the window.
struct Edges {
    from: i64,
    to: i64,
    smoothed: bool,
}

impl Edges {
    /// Returns the index of the newest sample at or before the start, or of the first sample.
    fn anchor(&self, samples: &[Sample]) -> usize {
        samples.partition_point(|sample| sample.0 <= self.from).saturating_sub(1)
    }

    /// Returns the growth from edge to edge; `None` without a sample after the start.
    fn growth(&self, samples: &[Sample], counter: bool) -> Option<f64> {
        let mut first = self.anchor(samples);
        let mut last = samples.len() - 1;
        if self.smoothed {
            last = samples.partition_point(|sample| sample.0 < self.to).min(last);
        }
        if samples[last].0 <= self.from {
            return None;
        }
        let left = match samples.get(first + 1) {
            Some(next) if self.smoothed && samples[first].0 < self.from => {
                interpolated(samples[first], *next, self.from, counter)
            }
            _ => samples[first].1,
        };
        let right = match last.checked_sub(1) {
            Some(before) if self.smoothed && samples[last].0 > self.to => {
                interpolated(samples[before], samples[last], self.to, counter)
            }
            _ => samples[last].1,
        };
        let mut growth = right - left;
        if counter {
            // The values at the edges account for resets next to them.
            first += usize::from(samples[first].0 <= self.from);
            let end = if samples[last].0 >= self.to { last } else { last + 1 };
            let mut before = left;
            let values = samples.get(first..end).unwrap_or_default().iter().map(|sample| sample.1);
            for value in values.chain([right]) {
                if value < before {
                    growth += before;
                }
                before = value;
            }
        }
        Some(growth)
    }

    /// Counts pairs of adjacent samples, from the anchor on, for which `is_counted` returns true.
    fn count_pairs(
        &self,
        samples: &[Sample],
        is_counted: impl Fn(f64, f64) -> bool,
    ) -> Option<f64> {
        let in_window = &samples[self.anchor(samples)..];
        let any_inside = in_window.last().is_some_and(|sample| sample.0 > self.from);
        let pairs = in_window.iter().zip(in_window.get(1..).unwrap_or_default());
        any_inside
            .then(|| pairs.filter(|(earlier, later)| is_counted(earlier.1, later.1)).count() as f64)
    }
}
