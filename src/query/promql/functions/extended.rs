//! Functions of extended selectors, and the values of smoothed ones.
//!
//! An anchored window takes the newest sample at or before its beginning as its first one; a
//! smoothed one goes by values at its edges that are drawn between the samples on either side. They
//! go by the samples that are known: of a merged cell the first and the last. Must never know: the
//! store, the tree.

use crate::query::promql::value::{
    error::PromqlError,
    series::ABSENT,
    windows::{Extension, Sample},
};

const OF_ANCHORED: [&str; 5] = ["changes", "delta", "increase", "rate", "resets"];
const OF_SMOOTHED: [&str; 3] = ["delta", "increase", "rate"];

/// A function over extended windows.
pub(crate) struct ExtendedFunction<'a> {
    name: &'a str,
    range_ms: i64,
    is_smoothed: bool,
}

impl<'a> ExtendedFunction<'a> {
    /// The function of this name, over windows of this length.
    ///
    /// # Errors
    /// When it is none for windows that are extended so.
    pub(crate) fn new(
        name: &'a str,
        extension: Extension,
        range_ms: i64,
    ) -> Result<Self, PromqlError> {
        let (modifier, functions) = match extension {
            Extension::Anchored => ("anchored", &OF_ANCHORED[..]),
            Extension::Smoothed => ("smoothed", &OF_SMOOTHED[..]),
        };
        if !functions.contains(&name) {
            return Err(PromqlError::Execution(format!(
                "{modifier} modifier can only be used with: {} - not with {name}",
                functions.join(", ")
            )));
        }
        Ok(Self { name, range_ms, is_smoothed: extension == Extension::Smoothed })
    }

    /// The answer for the window that ends there, from the samples in and around it.
    pub(crate) fn value(&self, samples: &[Sample], to: i64) -> f64 {
        let window = Edges { from: to - self.range_ms, to, smoothed: self.is_smoothed };
        let value = match self.name {
            "changes" => {
                window.counted(samples, |one, next| one != next && !(one.is_nan() && next.is_nan()))
            }
            "resets" => window.counted(samples, |one, next| next < one),
            "delta" => window.grown(samples, false),
            "rate" => {
                window.grown(samples, true).map(|grown| grown * 1000.0 / self.range_ms as f64)
            }
            _ => window.grown(samples, true),
        };
        value.unwrap_or(ABSENT)
    }
}

/// The value of a smoothed selector: drawn between the samples on either side of a time.
pub(crate) fn smoothed_at(samples: &[Sample], at: i64) -> f64 {
    let next = samples.partition_point(|sample| sample.0 < at);
    match (next.checked_sub(1).map(|before| samples[before]), samples.get(next)) {
        (_, Some(sample)) if sample.0 == at => sample.1,
        (Some(one), Some(next)) => drawn(one, *next, at, false),
        (Some(one), None) => one.1,
        (None, Some(next)) => next.1,
        (None, None) => ABSENT,
    }
}

/// The value on the line between two samples. A counter that was reset between them began at 0.
fn drawn(one: Sample, next: Sample, at: i64, counter: bool) -> f64 {
    let from = if counter && next.1 < one.1 { 0.0 } else { one.1 };
    from + (next.1 - from) * (at - one.0) as f64 / (next.0 - one.0) as f64
}

/// The window proper, of samples that reach beyond it.
struct Edges {
    from: i64,
    to: i64,
    smoothed: bool,
}

impl Edges {
    /// Index of the newest sample at or before the beginning, or of the first.
    fn anchor(&self, samples: &[Sample]) -> usize {
        samples.partition_point(|sample| sample.0 <= self.from).saturating_sub(1)
    }

    /// By how much the value grew from edge to edge; `None` without a sample behind the beginning.
    fn grown(&self, samples: &[Sample], counter: bool) -> Option<f64> {
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
                drawn(samples[first], *next, self.from, counter)
            }
            _ => samples[first].1,
        };
        let right = match last.checked_sub(1) {
            Some(before) if self.smoothed && samples[last].0 > self.to => {
                drawn(samples[before], samples[last], self.to, counter)
            }
            _ => samples[last].1,
        };
        let mut grown = right - left;
        if counter {
            // The values at the edges know of resets beside them.
            first += usize::from(samples[first].0 <= self.from);
            let end = if samples[last].0 >= self.to { last } else { last + 1 };
            let mut before = left;
            let inside = samples.get(first..end).unwrap_or_default().iter().map(|sample| sample.1);
            for value in inside.chain([right]) {
                if value < before {
                    grown += before;
                }
                before = value;
            }
        }
        Some(grown)
    }

    /// How many neighbours from the anchor on are so.
    fn counted(&self, samples: &[Sample], is_so: impl Fn(f64, f64) -> bool) -> Option<f64> {
        let from = &samples[self.anchor(samples)..];
        let any_inside = from.last().is_some_and(|sample| sample.0 > self.from);
        let pairs = from.iter().zip(from.get(1..).unwrap_or_default());
        any_inside.then(|| pairs.filter(|(one, next)| is_so(one.1, next.1)).count() as f64)
    }
}
