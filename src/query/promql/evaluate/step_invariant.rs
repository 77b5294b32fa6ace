//! Step-invariant expressions, which have the same value at all times and are evaluated once.
//!
//! Must never know: the store, values.

use crate::query::promql::syntax::tree::Expr;

/// Functions that depend on the evaluation time.
const TIME_DEPENDENT: [&str; 14] = [
    "info",
    "time",
    "timestamp",
    "predict_linear",
    "forecast",
    "forecast_until",
    "days_in_month",
    "day_of_month",
    "day_of_week",
    "day_of_year",
    "hour",
    "minute",
    "month",
    "year",
];

/// Returns true when an expression other than a literal has the same value at all times.
pub(crate) fn is_step_invariant(expression: &Expr) -> bool {
    !matches!(expression, Expr::Number(_) | Expr::Text(_)) && is_independent_of_time(expression)
}

/// Returns true when no part of an expression depends on the time.
fn is_independent_of_time(expression: &Expr) -> bool {
    match expression {
        Expr::Vector(selector) => selector.shift.at.is_some(),
        Expr::Matrix(matrix) => matrix.selector.shift.at.is_some(),
        Expr::Subquery(subquery) => subquery.shift.at.is_some(),
        Expr::Call(call) if TIME_DEPENDENT.contains(&call.function.name) => false,
        Expr::Aggregate(_)
        | Expr::Binary(_)
        | Expr::Call(_)
        | Expr::Number(_)
        | Expr::Paren(_)
        | Expr::Text(_)
        | Expr::Unary(_) => expression.children().into_iter().all(is_independent_of_time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::promql::{parse::parse, tests::LIMITS};

    #[test]
    fn expressions_that_depend_on_the_time_are_not_step_invariant() {
        for (text, expected) in [
            ("1", false),
            ("1 + 1", true),
            ("up", false),
            ("up @ 10", true),
            ("rate(up[5m] @ end()) + 1", true),
            ("rate(up[5m])", false),
            ("sum(up @ 10) / count(up)", false),
            ("topk(scalar(up), up @ 10)", false),
            ("time()", false),
            ("minute()", false),
            ("timestamp(up @ 10)", false),
            ("info(up @ 10)", false),
            ("predict_linear(up[5m] @ 10, 60)", false),
            ("max_over_time(up[5m:1m] @ 10)", true),
            ("max_over_time((up @ 10)[5m:1m])", false),
        ] {
            let expression = parse(text, &LIMITS).unwrap().tree;
            assert_eq!(is_step_invariant(&expression), expected, "{text}");
        }
    }
}
