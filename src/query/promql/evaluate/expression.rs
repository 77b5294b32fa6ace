//! Walks an expression's tree, all evaluation times at once.
//!
//! Must never know: how documents are read, what the functions compute.

use std::{
    cell::{self, RefCell},
    rc::Rc,
    time::SystemTime,
};

use promql_parser::parser::{
    AtModifier, Expr, Offset, SubqueryExpr, VectorSelector, value::ValueType,
};

use super::step_invariant::{is_constant, negated, repeated};
use crate::{
    model::{Kind, UnixMillis},
    policy::query_plan::{Detail, Windows},
    query::promql::{
        PromqlError, PromqlLimits, PromqlRequest,
        parse::positions::Positions,
        selectors::{
            cells::{LoadKey, Loaded, LoadedSeries},
            extended::{Reach, reach},
            instant::Take,
        },
        value::{
            annotations::Notes,
            cells::TimedCell,
            series::{ABSENT, Series, Value, is_present, without_names},
            steps::Grid,
            windows::{Cursor, Window, cell_around},
        },
    },
    store::Store,
};

/// Step of a subquery that names none, in milliseconds: Prometheus' evaluation interval.
const SUBQUERY_STEP_MS: i64 = 60_000;
/// Cells that functions look at until the time is checked again.
const CELLS_BETWEEN_CHECKS: usize = 1_000_000;
/// Lengths of time in expressions are cut to this, so that times cannot overflow.
const DURATION_MAX_MS: u128 = 1_000_000_000_000_000;

/// What an evaluation needs and what it has read.
pub(crate) struct Evaluator<'a> {
    pub(crate) store: &'a Store,
    pub(crate) limits: &'a PromqlLimits<'a>,
    pub(crate) now: UnixMillis,
    pub(crate) lookback_ms: i64,
    delayed_name_removal: bool,
    /// Times of the whole query; `@ start()` means the first.
    pub(crate) query: Grid,
    /// Where the query was asked to end, which `@ end()` means: the last time, or up to a step later.
    pub(crate) end: i64,
    pub(crate) positions: Positions,
    pub(crate) notes: RefCell<Notes>,
    pub(crate) loads: RefCell<Vec<(LoadKey, Rc<Loaded>)>>,
    pub(crate) cells: cell::Cell<usize>,
    /// Memory taken for values so far, and what those take that wait for others to be evaluated.
    pub(crate) values: cell::Cell<usize>,
    pub(crate) held: cell::Cell<usize>,
}

/// Windows over loaded cells.
pub(crate) struct Matrix {
    pub(crate) loaded: Rc<Loaded>,
    /// Length of a window in milliseconds.
    pub(crate) range_ms: i64,
    offset_ms: i64,
    at: Option<i64>,
}

impl Matrix {
    /// End of the window of an evaluation time.
    pub(crate) fn end_at(&self, evaluated_at: i64) -> i64 {
        self.at.unwrap_or(evaluated_at) - self.offset_ms
    }
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(
        store: &'a Store,
        request: &PromqlRequest,
        limits: &'a PromqlLimits<'a>,
        query: Grid,
        positions: Positions,
        now: UnixMillis,
    ) -> Self {
        Self {
            store,
            limits,
            now,
            lookback_ms: request.lookback_ms.clamp(1, DURATION_MAX_MS as i64),
            delayed_name_removal: request.delayed_name_removal,
            query,
            end: if request.step_ms > 0 { request.end.0 } else { query.start },
            positions,
            notes: RefCell::default(),
            loads: RefCell::default(),
            cells: cell::Cell::new(0),
            values: cell::Cell::new(0),
            held: cell::Cell::new(0),
        }
    }

    /// What an expression comes to at the grid's times. Matrices have no value of their own.
    pub(crate) fn value(&self, expression: &Expr, grid: &Grid) -> Result<Value, PromqlError> {
        self.check_time()?;
        self.check_points(1, grid.count)?;
        if grid.count > 1 && is_constant(expression) {
            return self.constant(expression, grid);
        }
        let value = match expression {
            Expr::NumberLiteral(number) => Value::Scalar(vec![number.val; grid.count]),
            Expr::StringLiteral(text) => Value::Text(text.val.clone()),
            Expr::Paren(inner) => self.value(&inner.expr, grid)?,
            Expr::Unary(inner) => negated(self.value(&inner.expr, grid)?),
            Expr::VectorSelector(selector) => Value::Vector(self.selected(selector, grid)?),
            Expr::Aggregate(aggregate) => Value::Vector(self.aggregate(aggregate, grid)?),
            Expr::Binary(binary) => self.binary(binary, grid)?,
            Expr::Call(call) => self.call(call, grid)?,
            Expr::MatrixSelector(_) | Expr::Subquery(_) | Expr::Extension(_) => {
                return Err(PromqlError::BadData(format!(
                    "{expression} is a range vector: give it to a function such as rate"
                )));
            }
        };
        let Value::Vector(series) = value else { return Ok(value) };
        self.check_points(series.len(), grid.count)?;
        let series = if self.delayed_name_removal { series } else { without_names(series)? };
        Ok(Value::Vector(series))
    }

    fn selected(&self, selector: &VectorSelector, grid: &Grid) -> Result<Vec<Series>, PromqlError> {
        match reach(selector) {
            None => self.instant(selector, grid, Take::Value),
            Some(Reach::Smoothed) => self.smoothed(selector, grid),
            Some(Reach::Anchored) => Err(PromqlError::BadData(
                "parse error: anchored modifier can only be used with range vectors".to_owned(),
            )),
        }
    }

    /// What is the same at all times is evaluated once.
    fn constant(&self, expression: &Expr, grid: &Grid) -> Result<Value, PromqlError> {
        let value = self.value(expression, &Grid::instant(grid.start))?;
        if let Value::Vector(series) = &value {
            self.check_points(series.len(), grid.count)?;
        }
        Ok(repeated(value, grid.count))
    }

    /// The value as an instant vector.
    pub(crate) fn vector(
        &self,
        expression: &Expr,
        grid: &Grid,
    ) -> Result<Vec<Series>, PromqlError> {
        match self.value(expression, grid)? {
            Value::Vector(series) => Ok(series),
            Value::Scalar(_) | Value::Text(_) => Err(wrong_type(expression, "instant vector")),
        }
    }

    /// The value as one number for each time.
    pub(crate) fn scalar(&self, expression: &Expr, grid: &Grid) -> Result<Vec<f64>, PromqlError> {
        match self.value(expression, grid)? {
            Value::Scalar(values) => Ok(values),
            Value::Vector(_) | Value::Text(_) => Err(wrong_type(expression, "scalar")),
        }
    }

    /// The windows of a range selector or subquery.
    pub(crate) fn matrix(
        &self,
        expression: &Expr,
        grid: &Grid,
        detail: Detail,
    ) -> Result<Matrix, PromqlError> {
        match expression {
            Expr::Paren(inner) => self.matrix(&inner.expr, grid, detail),
            Expr::MatrixSelector(matrix) if reach(&matrix.vs).is_some() => {
                Err(PromqlError::Execution(
                    "the anchored and smoothed modifiers can only be used with: changes, delta, \
                     increase, rate, resets"
                        .to_owned(),
                ))
            }
            Expr::MatrixSelector(matrix) => {
                let at = self.at(matrix.vs.at.as_ref());
                let offset_ms = offset_ms(matrix.vs.offset.as_ref());
                let range_ms = positive(matrix.range)?;
                let windows = Windows {
                    first: UnixMillis(at.unwrap_or(grid.start) - offset_ms),
                    step_ms: grid.step,
                    count: if at.is_some() { 1 } else { grid.count },
                    range_ms,
                    lookback_ms: self.lookback_ms,
                    detail,
                };
                let loaded = self.load(&matrix.vs, &windows)?;
                Ok(Matrix { loaded, range_ms, offset_ms, at })
            }
            Expr::Subquery(subquery) => self.subquery(subquery, grid),
            Expr::Aggregate(_)
            | Expr::Unary(_)
            | Expr::Binary(_)
            | Expr::NumberLiteral(_)
            | Expr::StringLiteral(_)
            | Expr::VectorSelector(_)
            | Expr::Call(_)
            | Expr::Extension(_) => Err(wrong_type(expression, "range vector")),
        }
    }

    /// Evaluates the inner expression once over all that the windows need, at multiples of its
    /// step.
    fn subquery(&self, subquery: &SubqueryExpr, grid: &Grid) -> Result<Matrix, PromqlError> {
        let at = self.at(subquery.at.as_ref());
        let offset_ms = offset_ms(subquery.offset.as_ref());
        let range_ms = positive(subquery.range)?;
        let step = subquery.step.map_or(Ok(SUBQUERY_STEP_MS), positive)?;
        let after = at.unwrap_or(grid.start) - offset_ms - range_ms;
        let last = at.unwrap_or(grid.last()) - offset_ms;
        let start = (after.div_euclid(step) + 1) * step;
        let count = if last < start { 0 } else { ((last - start) / step + 1) as usize };
        let inner = Grid { start, step, count };
        self.check_points(1, inner.count)?;
        let series = if count == 0 { Vec::new() } else { self.vector(&subquery.expr, &inner)? };
        for one in &series {
            let cells = one.values.iter().filter(|value| is_present(**value)).count();
            self.limits.take(cells * size_of::<TimedCell>())?;
        }
        let samples = |series: Series| LoadedSeries {
            labels: series.labels,
            drop_metric: series.drop_metric,
            kind: Kind::Gauge,
            ended_at: i64::MAX,
            cells: inner
                .times()
                .zip(series.values)
                .filter(|(_, value)| is_present(*value))
                .map(|(at, value)| TimedCell::sample(at, value))
                .collect(),
        };
        let loaded = Rc::new(Loaded::of_samples(series.into_iter().map(samples).collect()));
        Ok(Matrix { loaded, range_ms, offset_ms, at })
    }

    /// Calls a function for each series and each window that holds cells.
    pub(crate) fn over_windows(
        &self,
        matrix: &Matrix,
        grid: &Grid,
        mut function: impl FnMut(&Window<'_>, usize) -> Result<Option<f64>, PromqlError>,
    ) -> Result<Vec<Series>, PromqlError> {
        self.check_points(matrix.loaded.series.len(), grid.count)?;
        let mut out = Vec::with_capacity(matrix.loaded.series.len());
        // The widest slot that answered for a window within it.
        let mut around_ms = 0;
        for series in &matrix.loaded.series {
            self.check_time()?;
            let mut cursor = Cursor::default();
            let mut values = Vec::with_capacity(grid.count);
            let mut seen = 0;
            for (index, evaluated_at) in grid.times().enumerate() {
                let to = matrix.end_at(evaluated_at);
                let from = to - matrix.range_ms;
                let (mut lo, mut hi) = cursor.advance(&series.cells, from, to);
                let width_ms = matrix.loaded.width_at(to);
                if matrix.range_ms < width_ms
                    && let Some(around) = cell_around(&series.cells, hi, to, width_ms)
                {
                    (lo, hi) = (around, around + 1);
                    around_ms = width_ms.max(around_ms);
                }
                let (all, kind) = (&*series.cells, series.kind);
                let window = Window { all, lo, hi, from, to, evaluated_at, kind, width_ms };
                let value = if lo < hi { function(&window, index)? } else { None };
                seen += hi - lo;
                if seen > CELLS_BETWEEN_CHECKS {
                    seen = 0;
                    self.check_time()?;
                }
                values.push(value.unwrap_or(ABSENT));
            }
            let (labels, drop_metric) = (series.labels.clone(), series.drop_metric);
            out.push(Series { labels, drop_metric, values });
        }
        if around_ms > 0 {
            self.warn_of_short(matrix.range_ms, around_ms);
        }
        out.retain(Series::has_values);
        Ok(out)
    }

    /// The time that an `@` means.
    pub(crate) fn at(&self, modifier: Option<&AtModifier>) -> Option<i64> {
        Some(match modifier? {
            AtModifier::Start => self.query.start,
            AtModifier::End => self.end,
            AtModifier::At(time) => match time.duration_since(SystemTime::UNIX_EPOCH) {
                Ok(after) => millis(after),
                Err(before) => -millis(before.duration()),
            },
        })
    }
}

fn wrong_type(expression: &Expr, wanted: &str) -> PromqlError {
    PromqlError::BadData(format!("parse error: expected type {wanted}, got {expression}"))
}

/// An offset in milliseconds; positive ones look back.
pub(crate) fn offset_ms(offset: Option<&Offset>) -> i64 {
    match offset {
        None => 0,
        Some(Offset::Pos(length)) => millis(*length),
        Some(Offset::Neg(length)) => -millis(*length),
    }
}

fn millis(length: std::time::Duration) -> i64 {
    length.as_millis().min(DURATION_MAX_MS) as i64
}

/// A length of time in milliseconds; 0 is none.
pub(crate) fn positive(length: std::time::Duration) -> Result<i64, PromqlError> {
    match millis(length) {
        0 => Err(PromqlError::BadData("parse error: duration must be greater than 0".to_owned())),
        millis => Ok(millis),
    }
}

/// Whether an expression is a range vector.
pub(crate) fn is_matrix(expression: &Expr) -> bool {
    expression.value_type() == ValueType::Matrix
}
