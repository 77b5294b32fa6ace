//! Range vectors: range selectors, and subqueries, which are evaluated once for all their windows.
//!
//! Must never know: what functions make of a window.

use std::rc::Rc;

use promql_parser::parser::{Expr, SubqueryExpr};

use super::expression::{Evaluator, wrong_type};
use crate::{
    model::Kind,
    policy::query_plan::Detail,
    query::promql::{
        parse::selector::{extension, without_parens},
        selectors::modifiers::{positive_ms, shift},
        value::{
            cells::TimedCell,
            error::PromqlError,
            range_vector::{CellMatrix, CellSeries, RangeVector},
            series::{Series, is_present},
            steps::Steps,
        },
    },
    store::Columns,
};

/// Step of a subquery that names none: Prometheus' evaluation interval.
const SUBQUERY_STEP_MS: i64 = 60_000;

impl Evaluator<'_> {
    /// The windows of a range selector or subquery.
    pub(super) fn range_vector(
        &self,
        expression: &Expr,
        steps: &Steps,
        detail: Detail,
        columns: Columns,
    ) -> Result<RangeVector, PromqlError> {
        match without_parens(expression) {
            Expr::MatrixSelector(matrix) if extension(&matrix.vs).is_some() => {
                Err(PromqlError::Execution(
                    "the anchored and smoothed modifiers can only be used with: changes, delta, \
                     increase, rate, resets"
                        .to_owned(),
                ))
            }
            Expr::MatrixSelector(matrix) => self.selectors.range(matrix, steps, detail, columns),
            Expr::Subquery(subquery) => self.subquery(subquery, steps),
            Expr::Paren(_)
            | Expr::Aggregate(_)
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
    fn subquery(&self, subquery: &SubqueryExpr, steps: &Steps) -> Result<RangeVector, PromqlError> {
        let shift = shift(subquery.at.as_ref(), subquery.offset.as_ref(), &self.query);
        let range_ms = positive_ms(subquery.range)?;
        let step_ms = subquery.step.map_or(Ok(SUBQUERY_STEP_MS), positive_ms)?;
        let after = shift.of(steps.start) - range_ms;
        let last = shift.of(steps.last());
        let start = (after.div_euclid(step_ms) + 1) * step_ms;
        let count = if last < start { 0 } else { ((last - start) / step_ms + 1) as usize };
        let inner = Steps { start, step_ms, count };
        self.bounds.check_points(1, inner.count)?;
        let series = if count == 0 { Vec::new() } else { self.vector(&subquery.expr, &inner)? };
        for one in &series {
            let cells = one.values.iter().filter(|value| is_present(**value)).count();
            self.bounds.take(cells * size_of::<TimedCell>())?;
        }
        let samples = |series: Series| CellSeries {
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
        let series = series.into_iter().map(samples).collect();
        let cells = Rc::new(CellMatrix { series, widths: Vec::new(), finest_ms: 0 });
        Ok(RangeVector { cells, range_ms, shift })
    }
}
