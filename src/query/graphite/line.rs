//! Lines: the numbers of a series at evenly spaced times, and the conversion of lines to the same
//! times.
//!
//! Must never know: series of the store, functions.

use std::collections::BTreeMap;

use super::aggregation::{Aggregation, NULL};
use crate::query::{ExpressionLimits, QueryError};

/// The maximum size of a name or an origin in bytes. Longer texts are cut when they are created.
pub(super) const NAME_BYTES_MAX: usize = 16 << 10;

/// A line of the answer, or of a function's input.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The displayed name.
    pub name: String,
    /// The pattern or the call that created the line.
    pub(super) origin: String,
    /// The tags of the series; `name` is the metric.
    pub tags: BTreeMap<String, String>,
    /// The time of the first number, in Unix seconds.
    pub start: i64,
    /// Seconds from one number to the next.
    pub step: i64,
    /// The numbers; NaN is a missing number.
    pub values: Vec<f64>,
    /// The aggregation that merges several numbers into one.
    pub(super) consolidation: Aggregation,
}

impl Line {
    /// Returns the time after the last number.
    pub fn end(&self) -> i64 {
        self.time_of(self.values.len())
    }

    /// Returns the time of a number.
    pub(super) fn time_of(&self, index: usize) -> i64 {
        self.start.saturating_add(self.step.saturating_mul(index as i64))
    }

    /// Returns the line with another name, which also becomes its origin. A name of more than
    /// 16 KiB is cut.
    pub(super) fn with_name(self, name: String) -> Self {
        let name = cut_name(name);
        Self { origin: name.clone(), name, ..self }
    }

    /// Returns the line with numbers computed from its numbers.
    pub(super) fn map_values(mut self, compute: impl FnMut(f64) -> f64) -> Self {
        self.values = self.values.into_iter().map(compute).collect();
        self
    }

    /// Returns the known numbers.
    pub(super) fn known_values(&self) -> impl Iterator<Item = f64> {
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
    fn merge_to_step(&mut self, step: i64) {
        if step == self.step || self.step == 0 {
            return;
        }
        let start = self.start.div_euclid(step) * step;
        let last = self.end().saturating_sub(1).div_euclid(step).saturating_mul(step);
        let count = (last.saturating_sub(start) / step).saturating_add(1).max(0) as usize;
        let mut buckets: Vec<Vec<f64>> = vec![Vec::new(); count];
        for (index, value) in self.values.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
            let at = self.time_of(index).saturating_sub(start) / step;
            if let Some(bucket) = buckets.get_mut(at as usize) {
                bucket.push(*value);
            }
        }
        self.values = buckets.iter().map(|bucket| self.consolidation.of(bucket)).collect();
        (self.start, self.step) = (start, step);
    }

    /// Cuts or extends the line to a range of times at its own step.
    fn fit_to(&mut self, start: i64, count: usize) {
        let step = self.step;
        let value = |index: usize| {
            let at = start.saturating_add(step.saturating_mul(index as i64));
            let at = at.saturating_sub(self.start).div_euclid(step.max(1));
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
        line.merge_to_step(line.step.saturating_mul(per_point as i64));
    }
}

/// Cuts a name or an origin to 16 KiB at the end of a character.
pub(super) fn cut_name(mut name: String) -> String {
    if name.len() > NAME_BYTES_MAX {
        let ends_character = |end: &usize| name.is_char_boundary(*end);
        let end = (0..=NAME_BYTES_MAX).rev().find(ends_character).unwrap_or_default();
        name.truncate(end);
        name.shrink_to_fit();
    }
    name
}

/// Brings lines to the same start, step and length.
///
/// # Errors
/// When the lines would have too many points, or the budget is used up.
pub(super) fn normalize(
    lines: &mut [Line],
    limits: &ExpressionLimits<'_>,
) -> Result<(), QueryError> {
    let Some(step) = lines.iter().map(|line| line.step).reduce(common_multiple) else {
        return Ok(());
    };
    for line in &mut *lines {
        limits.budget.check()?;
        // The buckets are dropped as soon as the line is merged.
        let reserved = limits.budget.reserved();
        limits.reserve(line.values.len().saturating_mul(BUCKET_BYTES))?;
        line.merge_to_step(step);
        limits.budget.shrink_to(reserved);
    }
    let start = lines.iter().map(|line| line.start).min().unwrap_or_default();
    let end = lines.iter().map(Line::end).max().unwrap_or_default();
    let count = end.saturating_sub(start).max(0) as usize / step.max(1) as usize;
    let series = lines.len();
    if count.saturating_mul(series) > limits.points_max {
        return Err(QueryError::TooMuch(format!(
            "{series} series of {count} points, brought to the same times, exceed the limit of {}: \
             use series of closer times or a coarser step, or raise limits.query_points_max",
            limits.points_max
        )));
    }
    for line in lines.iter_mut().filter(|line| line.start != start || line.values.len() != count) {
        limits.budget.check()?;
        limits.reserve(count * size_of::<f64>())?;
        line.fit_to(start, count);
    }
    Ok(())
}

/// The memory that a number takes while it is merged: its bucket, and its element in the bucket.
pub(super) const BUCKET_BYTES: usize = 64;

/// The widest common step: 1,000 years. When the common step of lines would be wider, their numbers
/// are merged to this step.
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
pub(super) mod tests {
    use super::*;
    use crate::query::Budget;

    /// Limits without a limited budget.
    pub(in super::super) const LIMITS: ExpressionLimits<'static> = ExpressionLimits {
        series_max: 1000,
        points_max: 1_000_000,
        steps_max: 11_000,
        query_bytes_max: 65_536,
        regex_bytes_max: 1 << 20,
        budget: &Budget::UNLIMITED,
    };

    #[test]
    fn lines_of_distant_times_are_refused() {
        let mut late = line("b", &[1.0; 3]);
        late.start = 60 * 2_000_000;
        let error = normalize(&mut [line("a", &[1.0]), late], &LIMITS).unwrap_err().to_string();
        assert!(error.contains("2 series of 2000003 points"), "{error}");
        assert!(error.contains("raise limits.query_points_max"), "{error}");
        let mut last = line("b", &[1.0; 3]);
        last.start = i64::MAX - 1;
        assert_eq!(last.end(), i64::MAX);
        assert!(normalize(&mut [line("a", &[1.0]), last], &LIMITS).is_err());
        let budget = Budget::of_memory(1 << 20);
        let scarce = ExpressionLimits { budget: &budget, ..LIMITS };
        let mut later = line("b", &[1.0]);
        later.start = 60 * 400_000;
        let refused = normalize(&mut [line("a", &[1.0]), later], &scarce).unwrap_err();
        assert!(matches!(refused, QueryError::Busy(_)), "{refused}");
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let named = line("a", &[]).with_name(format!("x{}", "\u{e9}".repeat(10_000)));
        assert_eq!((named.name.len(), named.origin.len()), (16_383, 16_383));
    }

    #[test]
    fn lines_of_different_steps_are_brought_to_the_same_times() {
        let mut fine = line("a", &[1.0, 3.0, NULL, 5.0, 7.0]);
        fine.start = 60;
        let mut coarse = line("b", &[10.0, 20.0]);
        coarse.step = 120;
        let mut both = [fine, coarse];
        normalize(&mut both, &LIMITS).unwrap();
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
