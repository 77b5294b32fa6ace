//! What there is within an expression.
//!
//! Must never know: what an expression says.

use promql_parser::parser::{Expr, token};

/// The functions and aggregations whose answer has an order of its own.
const SORTING: [&str; 4] = ["sort", "sort_desc", "sort_by_label", "sort_by_label_desc"];

/// How many selectors there are.
pub(crate) fn selectors_in(expression: &Expr) -> usize {
    match expression {
        Expr::VectorSelector(_) | Expr::MatrixSelector(_) => 1,
        _ => parts_of(expression).into_iter().map(selectors_in).sum(),
    }
}

/// Whether the order of the answer is asked for.
pub(crate) fn sorts(expression: &Expr) -> bool {
    let is_sorting = match expression {
        Expr::Call(call) => SORTING.contains(&call.func.name),
        Expr::Aggregate(own) => [token::T_TOPK, token::T_BOTTOMK].contains(&own.op.id()),
        _ => false,
    };
    is_sorting || parts_of(expression).into_iter().any(sorts)
}

fn parts_of(expression: &Expr) -> Vec<&Expr> {
    match expression {
        Expr::Paren(own) => vec![&own.expr],
        Expr::Unary(own) => vec![&own.expr],
        Expr::Subquery(own) => vec![&own.expr],
        Expr::Aggregate(own) => own.param.as_deref().into_iter().chain([&*own.expr]).collect(),
        Expr::Binary(own) => vec![&own.lhs, &own.rhs],
        Expr::Call(call) => call.args.args.iter().map(|argument| &**argument).collect(),
        Expr::VectorSelector(_)
        | Expr::MatrixSelector(_)
        | Expr::NumberLiteral(_)
        | Expr::StringLiteral(_)
        | Expr::Extension(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_and_sorting_are_found_however_deep() {
        let of = |text: &str| {
            let tree = promql_parser::parser::parse(text).unwrap();
            (selectors_in(&tree), sorts(&tree))
        };
        assert_eq!(of("1 + 2"), (0, false));
        assert_eq!(of("sum by (a) (rate(b[5m])) / c"), (2, false));
        assert_eq!(of("limitk(scalar(a), -(b))"), (2, false));
        assert_eq!(of("round(sort_desc(a)) > 0"), (1, true));
        assert_eq!(of("max_over_time((topk(3, a))[5m:1m])"), (1, true));
    }
}
