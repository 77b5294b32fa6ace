//! Lines: the numbers of a series at evenly spaced times, and how lines are brought to the same
//! times.
//!
//! Must never know: series of the store, functions.

use std::collections::BTreeMap;

use super::aggregation::{Aggregation, NULL};

/// A line of the answer, or of a function's input.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The name that is shown.
    pub name: String,
    /// The pattern or the call that the line comes from.
    pub(super) origin: String,
    /// The tags of the series; `name` is the metric.
    pub tags: BTreeMap<String, String>,
    /// The time of the first number, in Unix seconds.
    pub start: i64,
    /// Seconds from one number to the next.
    pub step: i64,
    /// The numbers; NaN is a missing one.
    pub values: Vec<f64>,
    /// The way in which numbers are merged into fewer.
    pub(super) consolidation: Aggregation,
}

impl Line {
    /// Returns the time after the last number.
    pub fn end(&self) -> i64 {
        self.start + self.step * self.values.len() as i64
    }

    /// Returns the line with another name, which becomes its origin, too.
    pub(super) fn named(self, name: String) -> Self {
        Self { origin: name.clone(), name, ..self }
    }

    /// Returns the line with numbers computed from its numbers.
    pub(super) fn mapped(mut self, compute: impl FnMut(f64) -> f64) -> Self {
        self.values = self.values.into_iter().map(compute).collect();
        self
    }

    /// Returns the known numbers.
    pub(super) fn known(&self) -> impl Iterator<Item = f64> {
        self.values.iter().copied().filter(|value| !value.is_nan())
    }

    /// Returns the memory that the line takes.
    pub(super) fn bytes(&self) -> usize {
        let tags = self.tags.iter().map(|(name, value)| name.len() + value.len() + 64);
        size_of::<Self>()
            + self.name.len()
            + self.origin.len()
            + tags.sum::<usize>()
            + size_of_val(&self.values[..])
    }

    /// Merges each `count` numbers into one, beginning at a multiple of the new step.
    fn merged(&mut self, step: i64) {
        if step == self.step || self.step == 0 {
            return;
        }
        let start = self.start.div_euclid(step) * step;
        let end = (self.end() - 1).div_euclid(step) * step + step;
        let count = ((end - start) / step).max(0) as usize;
        let mut buckets: Vec<Vec<f64>> = vec![Vec::new(); count];
        for (index, value) in self.values.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
            let at = self.start + self.step * index as i64;
            if let Some(bucket) = buckets.get_mut(((at - start) / step) as usize) {
                bucket.push(*value);
            }
        }
        self.values = buckets.iter().map(|bucket| self.consolidation.of(bucket)).collect();
        (self.start, self.step) = (start, step);
    }

    /// Cuts or extends the line to a range of times at its own step.
    fn fit(&mut self, start: i64, count: usize) {
        let step = self.step;
        let value = |index: usize| {
            let at = (start + step * index as i64 - self.start).div_euclid(step);
            usize::try_from(at).ok().and_then(|at| self.values.get(at)).copied().unwrap_or(NULL)
        };
        self.values = (0..count).map(value).collect();
        self.start = start;
    }
}

/// Merges a line into at most `points` numbers.
pub(super) fn consolidate(line: &mut Line, points: usize) {
    let per_point = line.values.len().div_ceil(points.max(1)).max(1);
    if per_point > 1 {
        line.merged(line.step * per_point as i64);
    }
}

/// Brings lines to the same start, step and length.
pub(super) fn normalize(lines: &mut [Line]) {
    let Some(step) = lines.iter().map(|line| line.step).reduce(common_multiple) else { return };
    for line in &mut *lines {
        line.merged(step);
    }
    let start = lines.iter().map(|line| line.start).min().unwrap_or_default();
    let end = lines.iter().map(Line::end).max().unwrap_or_default();
    let count = (end - start).max(0) as usize / step.max(1) as usize;
    for line in lines.iter_mut().filter(|line| line.start != start || line.values.len() != count) {
        line.fit(start, count);
    }
}

/// The widest common step: 1,000 years. Lines of stranger steps are merged to this one.
const STEP_MAX: i64 = 31_557_600_000;

fn common_multiple(a: i64, b: i64) -> i64 {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor.max(1)).saturating_mul(b).clamp(1, STEP_MAX)
}

/// Returns a line for tests: numbers each 60 s from the time 0 on.
#[cfg(test)]
pub(super) fn line(name: &str, values: &[f64]) -> Line {
    Line {
        name: name.to_owned(),
        origin: name.to_owned(),
        tags: BTreeMap::from([("name".to_owned(), name.to_owned())]),
        start: 0,
        step: 60,
        values: values.to_vec(),
        consolidation: Aggregation::Average,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_different_steps_are_brought_to_the_same_times() {
        let mut fine = line("a", &[1.0, 3.0, NULL, 5.0, 7.0]);
        fine.start = 60;
        let mut coarse = line("b", &[10.0, 20.0]);
        coarse.step = 120;
        let mut both = [fine, coarse];
        normalize(&mut both);
        assert_eq!((both[0].start, both[0].step, both[0].values.len()), (0, 120, 3));
        assert_eq!(both[0].values, [1.0, 3.0, 6.0]);
        assert_eq!(both[1].values[..2], [10.0, 20.0]);
        assert!(both[1].values[2].is_nan());
        let mut long = line("c", &[1.0; 10]);
        long.consolidation = Aggregation::Sum;
        consolidate(&mut long, 4);
        assert_eq!(common_multiple(STEP_MAX - 1, STEP_MAX - 2), STEP_MAX);
        assert_eq!((long.step, &long.values[..]), (180, &[3.0, 3.0, 3.0, 1.0][..]));
    }
}
