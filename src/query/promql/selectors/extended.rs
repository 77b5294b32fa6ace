//! `anchored` and `smoothed`: windows and selectors that reach for samples beyond their edges
//! (Prometheus, docs/querying/basics.md, "Extended range selectors").
//!
//! An anchored window takes the newest sample at or before its beginning as its first one; a
//! smoothed one goes by values at its edges that are drawn between the samples on either side. They
//! go by the samples that are known: of a merged cell the first and the last. Must never know: the
//! tree but for selectors.

use promql_parser::parser::{Expr, MatrixSelector, VectorSelector};

use super::cells::LoadedSeries;
use crate::{
    model::UnixMillis,
    policy::query_plan::{Detail, Windows},
    query::promql::{
        PromqlError,
        evaluate::expression::{Evaluator, offset_ms, positive},
        parse::extensions::{ANCHORED, REACH_LABEL},
        value::{
            series::{ABSENT, Series},
            steps::Grid,
        },
    },
};

/// How a selector reaches beyond its edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// For the sample before it.
    Anchored,
    /// For the samples on either side.
    Smoothed,
}

const OF_ANCHORED: [&str; 5] = ["changes", "delta", "increase", "rate", "resets"];
const OF_SMOOTHED: [&str; 3] = ["delta", "increase", "rate"];

/// A sample: its time and its value.
type Sample = (i64, f64);

/// How a selector reaches, when it does.
pub(crate) fn reach(selector: &VectorSelector) -> Option<Reach> {
    let all = &selector.matchers;
    let mut matchers = all.matchers.iter().chain(all.or_matchers.iter().flatten());
    let found = matchers.find(|matcher| matcher.name == REACH_LABEL)?;
    Some(if found.value == ANCHORED { Reach::Anchored } else { Reach::Smoothed })
}

/// The range selector that an expression is, when it reaches beyond its edges.
pub(crate) fn reaching(expression: &Expr) -> Option<(&MatrixSelector, Reach)> {
    match expression {
        Expr::Paren(inner) => reaching(&inner.expr),
        Expr::MatrixSelector(matrix) => Some((matrix, reach(&matrix.vs)?)),
        Expr::Aggregate(_)
        | Expr::Unary(_)
        | Expr::Binary(_)
        | Expr::Subquery(_)
        | Expr::NumberLiteral(_)
        | Expr::StringLiteral(_)
        | Expr::VectorSelector(_)
        | Expr::Call(_)
        | Expr::Extension(_) => None,
    }
}

impl Evaluator<'_> {
    /// A function over windows that reach.
    pub(crate) fn reaching_call(
        &self,
        name: &str,
        (matrix, reach): (&MatrixSelector, Reach),
        grid: &Grid,
    ) -> Result<Vec<Series>, PromqlError> {
        let (modifier, functions) = match reach {
            Reach::Anchored => ("anchored", &OF_ANCHORED[..]),
            Reach::Smoothed => ("smoothed", &OF_SMOOTHED[..]),
        };
        if !functions.contains(&name) {
            return Err(PromqlError::Execution(format!(
                "{modifier} modifier can only be used with: {} - not with {name}",
                functions.join(", ")
            )));
        }
        let range_ms = positive(matrix.range)?;
        let after = if reach == Reach::Smoothed { self.lookback_ms } else { 0 };
        let all = self.around(&matrix.vs, grid, range_ms, after, |samples, to| {
            let window = Edges { from: to - range_ms, to, smoothed: reach == Reach::Smoothed };
            let value = match name {
                "changes" => window
                    .counted(samples, |one, next| one != next && !(one.is_nan() && next.is_nan())),
                "resets" => window.counted(samples, |one, next| next < one),
                "delta" => window.grown(samples, false),
                "rate" => window.grown(samples, true).map(|grown| grown * 1000.0 / range_ms as f64),
                _ => window.grown(samples, true),
            };
            value.unwrap_or(ABSENT)
        })?;
        Ok(all.into_iter().map(|one| Series { drop_metric: true, ..one }).collect())
    }

    /// The values of a smoothed selector: drawn between the samples on either side of each time.
    pub(crate) fn smoothed(
        &self,
        selector: &VectorSelector,
        grid: &Grid,
    ) -> Result<Vec<Series>, PromqlError> {
        self.around(selector, grid, 0, self.lookback_ms, |samples, at| {
            let next = samples.partition_point(|sample| sample.0 < at);
            match (next.checked_sub(1).map(|before| samples[before]), samples.get(next)) {
                (_, Some(sample)) if sample.0 == at => sample.1,
                (Some(one), Some(next)) => drawn(one, *next, at, false),
                (Some(one), None) => one.1,
                (None, Some(next)) => next.1,
                (None, None) => ABSENT,
            }
        })
    }

    /// Computes for each series and time from the samples between so far before the beginning of
    /// the window as the lookback says and `after` its end, and from that end.
    fn around(
        &self,
        selector: &VectorSelector,
        grid: &Grid,
        range_ms: i64,
        after: i64,
        compute: impl Fn(&[Sample], i64) -> f64,
    ) -> Result<Vec<Series>, PromqlError> {
        let at = self.at(selector.at.as_ref());
        let offset = offset_ms(selector.offset.as_ref());
        let windows = Windows {
            first: UnixMillis(at.unwrap_or(grid.start) - offset + after),
            step_ms: grid.step,
            count: if at.is_some() { 1 } else { grid.count },
            range_ms: range_ms + self.lookback_ms + after,
            lookback_ms: self.lookback_ms,
            detail: Detail::Samples,
        };
        let loaded = self.load(selector, &windows)?;
        self.check_points(loaded.series.len(), grid.count)?;
        let mut out = Vec::with_capacity(loaded.series.len());
        for series in &loaded.series {
            let samples = samples_of(series);
            let value = |time| {
                self.check_time()?;
                let to = at.unwrap_or(time) - offset;
                let first = to - range_ms - self.lookback_ms;
                let lo = samples.partition_point(|sample| sample.0 <= first);
                let hi = samples.partition_point(|sample| sample.0 <= to + after);
                Ok(if lo < hi { compute(&samples[lo..hi], to) } else { ABSENT })
            };
            let values = grid.times().map(value).collect::<Result<Vec<_>, PromqlError>>()?;
            out.push(Series { labels: series.labels.clone(), drop_metric: false, values });
        }
        out.retain(Series::has_values);
        Ok(out)
    }
}

/// The samples that are known of a series.
fn samples_of(series: &LoadedSeries) -> Vec<Sample> {
    let mut samples = Vec::with_capacity(series.cells.len());
    for cell in &series.cells {
        if cell.n > 1 && cell.first_at < cell.last_at {
            samples.push((cell.first_at, cell.first));
        }
        samples.push((cell.last_at, cell.last));
    }
    samples
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
