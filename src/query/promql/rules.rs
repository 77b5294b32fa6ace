//! Checks of rules' expressions before they are evaluated: syntax, durations, comparisons.
//!
//! Must never know: values, the store, the purpose of a rule.

use std::collections::BTreeSet;

use super::{
    parse::parse,
    selectors::compiled::matchers_of,
    syntax::{
        self,
        span::SyntaxError,
        tree::{Expr, Shift, Subquery, ValueType},
    },
    value::steps::QueryTimes,
};
use crate::query::{ExpressionLimits, QueryError};

/// Checks an expression that is evaluated regularly, including its patterns.
///
/// # Errors
/// When the expression is invalid, or is neither an instant vector nor a scalar.
pub fn check_rule_promql(query: &str, limits: &ExpressionLimits<'_>) -> Result<(), QueryError> {
    let parsed = parse(query, limits)?;
    let kind = parsed.tree.value_type();
    if matches!(kind, ValueType::Matrix | ValueType::Text) {
        let problem =
            format!("the expression is a {kind}; a rule needs an instant vector or a scalar");
        return Err(QueryError::Invalid(problem));
    }
    check_durations(&parsed.tree).map_err(|error| QueryError::Invalid(error.in_text(query)))?;
    let mut selectors = parsed.tree.selectors().into_iter();
    selectors.try_for_each(|selector| matchers_of(selector, limits).map(drop))
}

/// Checks calculated durations. A rule is evaluated at one time.
fn check_durations(expression: &Expr) -> Result<(), SyntaxError> {
    let (windows, shift) = match expression {
        Expr::Vector(selector) => (vec![], Some(&selector.shift)),
        Expr::Matrix(matrix) => (vec![&matrix.range], Some(&matrix.selector.shift)),
        Expr::Subquery(Subquery { range, step, shift, .. }) => {
            (std::iter::once(range).chain(step).collect(), Some(shift))
        }
        Expr::Aggregate(_)
        | Expr::Binary(_)
        | Expr::Call(_)
        | Expr::Number(_)
        | Expr::Paren(_)
        | Expr::Text(_)
        | Expr::Unary(_) => (vec![], None),
    };
    for window in windows {
        window.positive_millis(QueryTimes::INSTANT)?;
    }
    if let Some(offset) = shift.and_then(|shift| shift.offset.as_ref()) {
        offset.millis(QueryTimes::INSTANT)?;
    }
    expression.children().into_iter().try_for_each(check_durations)
}

/// Returns the expression before a final comparison with a number; `None` without such a
/// comparison.
///
/// # Errors
/// When the expression is invalid.
pub fn measured_promql(
    query: &str,
    limits: &ExpressionLimits<'_>,
) -> Result<Option<String>, QueryError> {
    let parsed = parse(query, limits)?;
    let Expr::Binary(compared) = parsed.tree.without_parens() else { return Ok(None) };
    let is_number = matches!(compared.right.without_parens(), Expr::Number(_));
    let is_filter = compared.operator.is_comparison() && !compared.return_bool;
    Ok((is_filter && is_number).then(|| syntax::format_expression(&compared.left)))
}

/// Returns true if two aggregations return different labels whenever their series have all labels
/// that are named in `by` and `without`, such as `sum(a)` and `sum by (job) (b)`. Returns false for
/// other expressions, and for aggregations with a parameter, which may keep other labels.
///
/// # Errors
/// When an expression is invalid.
pub fn labels_always_differ(
    left: &str,
    right: &str,
    limits: &ExpressionLimits<'_>,
) -> Result<bool, QueryError> {
    let [left, right] = [parse(left, limits)?, parse(right, limits)?];
    let set = |names: &[String]| -> BTreeSet<String> { names.iter().cloned().collect() };
    Ok(match [grouping_of(&left.tree), grouping_of(&right.tree)] {
        [Some((true, left)), Some((true, right))] => set(left) != set(right),
        [Some((true, only)), Some((false, except))]
        | [Some((false, except)), Some((true, only))] => !set(only).is_disjoint(&set(except)),
        _ => false,
    })
}

/// Returns the labels that define the groups of an aggregation, and true for `by`.
fn grouping_of(tree: &Expr) -> Option<(bool, &[String])> {
    let Expr::Aggregate(aggregate) = tree.without_parens() else { return None };
    let grouping = aggregate.grouping.as_ref();
    let grouping = grouping.map_or((true, [].as_slice()), |g| (g.is_only(), g.names()));
    aggregate.parameter.is_none().then_some(grouping)
}

/// Returns the durations by which a plain expression looks back, in milliseconds. An expression is
/// plain when each series of its result is independent of other series and of other times. `None`
/// for other expressions.
///
/// # Errors
/// When the expression is invalid.
pub fn durations_of_plain_promql(
    query: &str,
    limits: &ExpressionLimits<'_>,
) -> Result<Option<Vec<i64>>, QueryError> {
    let mut durations = Vec::new();
    let parsed = parse(query, limits)?;
    Ok(is_plain(&parsed.tree, &mut durations).then_some(durations))
}

fn is_plain(expression: &Expr, durations: &mut Vec<i64>) -> bool {
    let is_now = |shift: &Shift| shift.at.is_none() && shift.offset.is_none();
    match expression {
        Expr::Vector(selector) => is_now(&selector.shift),
        Expr::Matrix(matrix) => {
            let range = matrix.range.positive_millis(QueryTimes::INSTANT).ok();
            durations.extend(range);
            range.is_some() && is_now(&matrix.selector.shift)
        }
        Expr::Call(call) if call.function.name.starts_with("absent") => false,
        Expr::Call(call) if call.function.name == "info" => false,
        Expr::Binary(binary) if binary.operator.is_set() => false,
        Expr::Aggregate(_) | Expr::Subquery(_) => false,
        Expr::Binary(_)
        | Expr::Call(_)
        | Expr::Number(_)
        | Expr::Paren(_)
        | Expr::Text(_)
        | Expr::Unary(_) => {
            expression.children().into_iter().all(|child| is_plain(child, durations))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::promql::tests::LIMITS;

    #[test]
    fn expressions_that_depend_on_other_series_or_times_are_not_plain() {
        let check = |text: &str, expected: Option<&[i64]>| {
            let found = durations_of_plain_promql(text, &LIMITS).unwrap();
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
    fn the_measured_expression_is_on_the_left_of_the_comparison() {
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
    fn labels_of_two_aggregations_differ_when_no_series_could_have_the_same() {
        let check = |left: &str, right: &str, expected: bool| {
            for (left, right) in [(left, right), (right, left)] {
                let found = labels_always_differ(left, right, &LIMITS).unwrap();
                assert_eq!(found, expected, "{left} and {right}");
            }
        };
        check("sum(a)", "(sum by (job) (b))", true);
        check("sum by (job, host) (a)", "count by (host, job) (b)", false);
        check("sum by (job, host) (a)", "sum by (job) (b)", true);
        check("sum by (job) (a)", "sum without (job, host) (b)", true);
        check("sum by (job) (a)", "sum without (host) (b)", false);
        check("sum without (code, host) (a)", "sum without (host) (b)", false);
        check("sum(a)", "b", false);
        check("sum(a)", "topk by (job) (3, b)", false);
        assert!(labels_always_differ("sum(a)", "sum(", &LIMITS).is_err());
    }

    #[test]
    fn expressions_of_rules_are_checked_with_their_patterns() {
        let check = |query: &str| check_rule_promql(query, &LIMITS).map_err(|e| e.to_string());
        for query in ["up", "1", "sum(rate(x[5m])) > 2", r#"up{a=~"b.*"}"#] {
            assert_eq!(check(query), Ok(()), "{query}");
        }
        for query in [
            "up[5m]",
            "\"a\"",
            r#"up{a=~"("}"#,
            r#"rate(up{a=~"("}[5m])"#,
            "up +",
            "rate(up[step()])",
        ] {
            assert!(check(query).is_err(), "{query}");
        }
    }
}
