//! Parts of an expression that are the same at all times are evaluated once; and values that are
//! changed without a look at times.
//!
//! Must never know: the store.

use promql_parser::parser::Expr;

use crate::query::promql::value::series::{ABSENT, Value, is_present};

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
pub(crate) fn is_constant(expression: &Expr) -> bool {
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

/// A value with its sign changed.
pub(crate) fn negated(value: Value) -> Value {
    match value {
        Value::Scalar(mut values) => {
            for value in &mut values {
                *value = -*value;
            }
            Value::Scalar(values)
        }
        Value::Vector(mut series) => {
            for one in &mut series {
                one.drop_metric = true;
                let present = one.values.iter_mut().filter(|value| is_present(**value));
                present.for_each(|value| *value = -*value);
            }
            Value::Vector(series)
        }
        Value::Text(text) => Value::Text(text),
    }
}

/// A value of one time at several.
pub(crate) fn repeated(value: Value, count: usize) -> Value {
    let repeat = |values: Vec<f64>| vec![values.first().copied().unwrap_or(ABSENT); count];
    match value {
        Value::Scalar(values) => Value::Scalar(repeat(values)),
        Value::Vector(mut series) => {
            for one in &mut series {
                one.values = repeat(std::mem::take(&mut one.values));
            }
            Value::Vector(series)
        }
        Value::Text(text) => Value::Text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::promql::{parse, tests::LIMITS};

    #[test]
    fn what_depends_on_the_time_is_not_constant() {
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
            let expression = parse::parse(text, None, &LIMITS).unwrap();
            assert_eq!(is_constant(&expression), expected, "{text}");
        }
    }
}
