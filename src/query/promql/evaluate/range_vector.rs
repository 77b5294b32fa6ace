//! Range vectors: range selectors, and subqueries, which are evaluated once for all their windows.
//!
//! Must never know: how functions use a window.

use std::rc::Rc;

use super::expression::{Evaluator, wrong_type};
use crate::query::QueryError;
use crate::{
    model::Kind,
    policy::query_plan::Detail,
    query::promql::{
        selectors::modifiers::shift,
        syntax::tree::{Expr, Subquery},
        value::{
            cells::TimedCell,
            histograms::{TimedHistogram, without_reset_hint},
            range_vector::{CellMatrix, CellSeries, RangeVector},
            series::{Series, is_present},
            steps::Steps,
        },
    },
    store::Columns,
};

/// The default step of a subquery: Prometheus' evaluation interval.
const SUBQUERY_STEP_MS: i64 = 60_000;

impl Evaluator<'_> {
    /// Returns the windows of a range selector or subquery.
    pub(super) fn range_vector(
        &self,
        expression: &Expr,
        steps: &Steps,
        detail: Detail,
        columns: Columns,
    ) -> Result<RangeVector, QueryError> {
        match expression.without_parens() {
            Expr::Matrix(matrix) if matrix.selector.extension.is_some() => {
                Err(QueryError::Execution(
                    "the anchored and smoothed modifiers can only be used with: changes, delta, \
                     increase, rate, resets"
                        .to_owned(),
                ))
            }
            Expr::Matrix(matrix) => self.selectors.range(matrix, steps, detail, columns),
            Expr::Subquery(subquery) => self.subquery(subquery, steps),
            Expr::Paren(_)
            | Expr::Aggregate(_)
            | Expr::Unary(_)
            | Expr::Binary(_)
            | Expr::Number(_)
            | Expr::Text(_)
            | Expr::Vector(_)
            | Expr::Call(_) => Err(wrong_type(expression, "range vector")),
        }
    }

    /// Evaluates the inner expression once over the range of all windows, at multiples of the
    /// subquery's step.
    fn subquery(&self, subquery: &Subquery, steps: &Steps) -> Result<RangeVector, QueryError> {
        let (shift, times) = (shift(&subquery.shift, &self.query)?, self.query.times);
        let range_ms = subquery.range.positive_millis(times)?;
        let step = subquery.step.as_ref();
        let step_ms = step.map_or(Ok(SUBQUERY_STEP_MS), |step| step.positive_millis(times))?;
        let after = shift.of(steps.start) - range_ms;
        let last = shift.of(steps.last());
        let start = (after.div_euclid(step_ms) + 1) * step_ms;
        let count = if last < start { 0 } else { ((last - start) / step_ms + 1) as usize };
        let inner = Steps { start, step_ms, count };
        self.bounds.check_points(1, inner.count)?;
        let series = if count == 0 { Vec::new() } else { self.vector(&subquery.inner, &inner)? };
        for entry in &series {
            let cells = entry.values.iter().filter(|value| is_present(**value)).count();
            let slots = entry.histograms.iter().count() * size_of::<TimedHistogram>();
            let histograms = slots + entry.histograms.copied_bytes();
            self.bounds.reserve(cells * size_of::<TimedCell>() + histograms)?;
        }
        let samples = |series: Series| CellSeries {
            labels: series.labels,
            drop_metric: series.drop_metric,
            kind: Kind::Gauge,
            histogram_kind: Kind::GaugeHistogram,
            ended_at: i64::MAX,
            counted: Vec::new(),
            histograms: inner
                .times()
                .enumerate()
                .filter_map(|(step, at)| {
                    let found = series.histograms.get(step)?;
                    Some(TimedHistogram::reading(at, without_reset_hint(found)))
                })
                .collect(),
            cells: inner
                .times()
                .zip(series.values)
                .filter(|(_, value)| is_present(*value))
                .map(|(at, value)| TimedCell::sample(at, value))
                .collect(),
        };
        let series = series.into_iter().map(samples).collect();
        let cells = Rc::new(CellMatrix { series, widths: Vec::new(), finest_ms: 0 });
        Ok(RangeVector { cells, range_ms, shift })
    }
}
