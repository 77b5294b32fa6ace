//! The context of an evaluation: the store, the time range, and the limits.
//!
//! Must never know: how expressions are evaluated, single functions.

use std::ops::Range;

use super::{
    aggregation::Aggregation,
    fetch::FetchRequest,
    line::Line,
    paths::Paths,
    shards::{Search, lines_of_shards},
    syntax::Expr,
};
use crate::{
    model::{UnixMillis, graphite::Template},
    query::{ExpressionLimits, QueryError},
    store::Store,
};

/// The maximum shift of a range in seconds: 1,000 years.
const SHIFT_MAX: i64 = 31_557_600_000;

/// A function that evaluates an expression.
pub(super) type Evaluate = fn(&Expr, &Context<'_>) -> Result<Vec<Line>, QueryError>;

/// The context in which a target is evaluated. A function may evaluate its arguments in a changed
/// context, for example over an earlier range.
#[derive(Clone)]
pub(super) struct Context<'a> {
    /// The evaluation, for the arguments of functions.
    pub(super) evaluate: Evaluate,
    pub(super) store: &'a Store,
    pub(super) templates: &'a [Template],
    pub(super) limits: &'a ExpressionLimits<'a>,
    pub(super) now: UnixMillis,
    /// The time range in Unix seconds, end exclusive.
    pub(super) range: Range<i64>,
    /// The maximum number of points of a line.
    pub(super) points: usize,
    /// The aggregation that `consolidateBy` selects.
    pub(super) aggregation: Option<Aggregation>,
}

impl<'a> Context<'a> {
    pub(super) fn paths(&self) -> Paths<'a> {
        Paths { store: self.store, templates: self.templates, limits: self.limits }
    }

    /// Reads the series of a pattern.
    pub(super) fn lines_of_path(&self, pattern: &str) -> Result<Vec<Line>, QueryError> {
        self.lines(&Search::Path(pattern.to_owned()), pattern)
    }

    /// Reads the series that fulfil conditions on their tags.
    pub(super) fn lines_with_tags(&self, conditions: &[String]) -> Result<Vec<Line>, QueryError> {
        let quoted: Vec<_> = conditions.iter().map(|text| format!("'{text}'")).collect();
        let origin = format!("seriesByTag({})", quoted.join(","));
        self.lines(&Search::Tags(conditions.to_vec()), &origin)
    }

    fn lines(&self, search: &Search, origin: &str) -> Result<Vec<Line>, QueryError> {
        let (request, paths) = (self.fetch_request(origin), self.paths());
        if self.limits.budget.others().is_some() {
            return lines_of_shards(&request, paths, search);
        }
        request.lines(search.found(paths)?)
    }

    fn fetch_request<'w>(&'w self, origin: &'w str) -> FetchRequest<'w> {
        let millis = |seconds: i64| UnixMillis(seconds.saturating_mul(1000));
        FetchRequest {
            store: self.store,
            limits: self.limits,
            now: self.now,
            range: millis(self.range.start)..millis(self.range.end),
            points: self.points,
            aggregation: self.aggregation,
            origin,
        }
    }

    /// Returns the context with its range moved to earlier times.
    ///
    /// # Errors
    /// When the range is moved by more than 1,000 years, to before 1970 or to after 9998.
    pub(super) fn shifted_back(&self, seconds: i64) -> Result<Self, QueryError> {
        if seconds.saturating_abs() > SHIFT_MAX {
            return Err(QueryError::Invalid(format!(
                "a shift of {seconds} s is more than 1,000 years: use a shorter one"
            )));
        }
        let moved = |at: i64| at.saturating_sub(seconds);
        let range = moved(self.range.start)..moved(self.range.end);
        if range.start < 0 || range.end > UnixMillis::MAX.0 / 1000 {
            return Err(QueryError::Invalid(format!(
                "a shift of {seconds} s begins before the year 1970 or ends after 9998: use a \
                 shorter one"
            )));
        }
        Ok(Self { range, ..self.clone() })
    }

    /// Returns the context with a range that begins earlier.
    pub(super) fn extended_back(&self, seconds: i64) -> Self {
        let start = self.range.start.saturating_sub(seconds).max(0);
        let (longer, length) = (self.range.end - start, self.range.end - self.range.start);
        // The additional points have the same step, up to the limit of a query.
        let points = (self.points as i64).saturating_mul(longer) / length.max(1);
        let points = (points.max(1) as usize).min(self.limits.points_max.max(1));
        Self { range: start..self.range.end, points, ..self.clone() }
    }

    /// Reserves memory for lines that are copied.
    pub(super) fn reserve_copies(&self, lines: &[Line]) -> Result<(), QueryError> {
        self.limits.budget.check()?;
        self.limits.reserve(lines.iter().map(Line::bytes).sum())
    }

    /// Reserves the memory of a line that a function created, before the function creates the next
    /// line.
    pub(super) fn reserve_line(&self, line: Line) -> Result<Line, QueryError> {
        self.reserve_copies(std::slice::from_ref(&line))?;
        Ok(line)
    }
}
