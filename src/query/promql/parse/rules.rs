//! What rules must know of their expressions before they are evaluated.
//!
//! Must never know: values, the store, what a rule is for.

use promql_parser::{
    parser::{Expr, VectorSelector, value::ValueType},
    util::{ExprVisitor, walk_expr},
};

use super::{
    format::shown,
    parse,
    selector::{matchers_of, without_parens},
};
use crate::query::promql::{request::PromqlLimits, value::error::PromqlError};

/// Checks an expression that is evaluated again and again, its patterns included.
///
/// # Errors
/// When it is no expression, or none that has one value for each series.
pub fn check_rule_promql(query: &str, limits: &PromqlLimits<'_>) -> Result<(), PromqlError> {
    let parsed = parse(query, limits)?;
    let kind = match parsed.value_type() {
        ValueType::Vector | ValueType::Scalar => {
            return walk_expr(&mut Selectors(limits), &parsed).map(drop);
        }
        ValueType::Matrix => "range vector",
        ValueType::String => "string",
    };
    let problem = format!("it is a {kind}; a rule needs an instant vector or a scalar");
    Err(PromqlError::BadData(problem))
}

/// What an expression compares with a number at its end; `None` when it does not.
///
/// # Errors
/// When it is no expression.
pub fn measured_promql(
    query: &str,
    limits: &PromqlLimits<'_>,
) -> Result<Option<String>, PromqlError> {
    let parsed = parse(query, limits)?;
    let Expr::Binary(compared) = without_parens(&parsed) else { return Ok(None) };
    let is_number = matches!(without_parens(&compared.rhs), Expr::NumberLiteral(_));
    let is_filter = compared.op.is_comparison_operator() && !compared.return_bool();
    Ok((is_filter && is_number).then(|| shown(&compared.lhs)))
}

/// The lengths of time by which an expression looks back, in milliseconds, when each of its series is
/// found however many others there are, and at the evaluation's time only; else `None`.
///
/// # Errors
/// When it is no expression.
pub fn lengths_of_plain_promql(
    query: &str,
    limits: &PromqlLimits<'_>,
) -> Result<Option<Vec<i64>>, PromqlError> {
    let mut lengths = Vec::new();
    let parsed = parse(query, limits)?;
    Ok(is_plain(&parsed, &mut lengths).then_some(lengths))
}

fn is_plain(expression: &Expr, lengths: &mut Vec<i64>) -> bool {
    let is_now = |selector: &VectorSelector| selector.at.is_none() && selector.offset.is_none();
    match expression {
        Expr::Paren(inner) => is_plain(&inner.expr, lengths),
        Expr::Unary(inner) => is_plain(&inner.expr, lengths),
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) => true,
        Expr::VectorSelector(selector) => is_now(selector),
        Expr::MatrixSelector(selector) => {
            lengths.push(selector.range.as_millis() as i64);
            is_now(&selector.vs)
        }
        Expr::Call(call) => {
            let looks_at_all = call.func.name.starts_with("absent") || call.func.name == "info";
            let all = &call.args.args;
            !looks_at_all && all.iter().all(|own| is_plain(own, lengths))
        }
        Expr::Binary(binary) => {
            let is_set = binary.op.is_set_operator();
            !is_set && is_plain(&binary.lhs, lengths) && is_plain(&binary.rhs, lengths)
        }
        Expr::Aggregate(_) | Expr::Subquery(_) | Expr::Extension(_) => false,
    }
}

/// Compiles the patterns of every selector.
struct Selectors<'a>(&'a PromqlLimits<'a>);

impl Selectors<'_> {
    fn check(&self, selector: &VectorSelector) -> Result<(), PromqlError> {
        matchers_of(selector, self.0).map(drop)
    }
}

impl ExprVisitor for Selectors<'_> {
    type Error = PromqlError;

    fn pre_visit(&mut self, expression: &Expr) -> Result<bool, PromqlError> {
        if let Expr::VectorSelector(selector) = expression {
            self.check(selector)?;
        }
        if let Expr::MatrixSelector(selector) = expression {
            self.check(&selector.vs)?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::promql::tests::LIMITS;

    #[test]
    fn what_more_series_could_hide_or_another_time_decides_is_not_plain() {
        let check = |text: &str, expected: Option<&[i64]>| {
            let found = lengths_of_plain_promql(text, &LIMITS).unwrap();
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check("level > 5", Some(&[]));
        check("-(rate(a[1m]) / on (x) delta(b[2m])) > 5", Some(&[60_000, 120_000]));
        for text in [
            "absent(a)",
            "absent_over_time(a[1m])",
            "count(a) < 3",
            "a unless b",
            "a or b",
            "a and b",
            "a offset 5s > 1",
            "a @ 10 > 1",
            "max_over_time(a[5m:1m]) > 1",
            "abs(sum(a)) > 1",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn what_is_measured_stands_before_the_comparison() {
        let check = |query: &str, expected: Option<&str>| {
            assert_eq!(measured_promql(query, &LIMITS).unwrap().as_deref(), expected, "{query}");
        };
        check("up == 0", Some("up"));
        check("(a / b * 100) > (90)", Some("(a / b * 100)"));
        check(
            r#"sum by(x)(rate(a{b=~"c|d"}[5m])) >= 1e3"#,
            Some(r#"sum by (x) (rate(a{b=~"c|d"}[5m]))"#),
        );
        check("a > b", None);
        check("a > bool 1", None);
        check("a", None);
        check("a > 1 and b > 2", None);
    }

    #[test]
    fn expressions_of_rules_are_checked_with_their_patterns() {
        let check = |query: &str| check_rule_promql(query, &LIMITS).map_err(|e| e.to_string());
        for query in ["up", "1", "sum(rate(x[5m])) > 2", r#"up{a=~"b.*"}"#] {
            assert_eq!(check(query), Ok(()), "{query}");
        }
        for query in ["up[5m]", "\"a\"", r#"up{a=~"("}"#, r#"rate(up{a=~"("}[5m])"#, "up +"] {
            assert!(check(query).is_err(), "{query}");
        }
    }
}
