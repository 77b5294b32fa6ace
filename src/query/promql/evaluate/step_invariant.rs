//! Step invariant parts of an expression: they are the same at all times, and are evaluated once.
//!
//! Must never know: the store, values.

use promql_parser::parser::Expr;

/// Functions whose answer depends on the evaluation time itself.
const OF_TIME: [&str; 12] = [
    "info",
    "time",
    "timestamp",
    "predict_linear",
    "days_in_month",
    "day_of_month",
    "day_of_week",
    "day_of_year",
    "hour",
    "minute",
    "month",
    "year",
];

/// Whether an expression, no mere literal, has the same value at all times.
pub(crate) fn is_step_invariant(expression: &Expr) -> bool {
    match expression {
        Expr::VectorSelector(selector) => selector.at.is_some(),
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::Extension(_) => false,
        Expr::Aggregate(_)
        | Expr::Unary(_)
        | Expr::Binary(_)
        | Expr::Paren(_)
        | Expr::Subquery(_)
        | Expr::MatrixSelector(_)
        | Expr::Call(_) => keeps(expression),
    }
}

/// Whether nothing in an expression depends on the time.
fn keeps(expression: &Expr) -> bool {
    match expression {
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) => true,
        Expr::VectorSelector(selector) => selector.at.is_some(),
        Expr::MatrixSelector(matrix) => matrix.vs.at.is_some(),
        Expr::Subquery(subquery) => subquery.at.is_some(),
        Expr::Paren(inner) => keeps(&inner.expr),
        Expr::Unary(inner) => keeps(&inner.expr),
        Expr::Binary(binary) => keeps(&binary.lhs) && keeps(&binary.rhs),
        Expr::Aggregate(aggregate) => {
            keeps(&aggregate.expr) && aggregate.param.iter().all(|param| keeps(param))
        }
        Expr::Call(call) => {
            !OF_TIME.contains(&call.func.name) && call.args.args.iter().all(|arg| keeps(arg))
        }
        Expr::Extension(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::promql::{parse, tests::LIMITS};

    #[test]
    fn what_depends_on_the_time_is_not_step_invariant() {
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
            let expression = parse::parse(text, &LIMITS).unwrap();
            assert_eq!(is_step_invariant(&expression), expected, "{text}");
        }
    }
}
