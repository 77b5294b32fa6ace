//! The types of a query's parts, and the rules that they must follow.
//!
//! The source is Prometheus' check (promql/parser/parse.go, `checkAST`): its order decides which of
//! several errors is reported. Must never know: tokens.

use super::{
    operator::Aggregation,
    span::SyntaxError,
    tree::{Aggregate, Binary, Call, Expr, ManySide, Matcher, ValueType, VectorSelector},
};
use crate::model::{METRIC_TAG, TagComparison};

type CheckResult = Result<ValueType, SyntaxError>;

/// Checks an expression and returns the type of its value.
///
/// # Errors
/// The first broken rule.
pub(super) fn check(expression: &Expr) -> CheckResult {
    match expression {
        Expr::Aggregate(aggregate) => check_aggregate(aggregate)?,
        Expr::Binary(binary) => check_binary(binary)?,
        Expr::Call(call) => check_call(call)?,
        Expr::Matrix(matrix) => check_selector(&matrix.selector)?,
        Expr::Paren(paren) => {
            check(&paren.inner)?;
        }
        Expr::Subquery(subquery) => {
            let inner = check(&subquery.inner)?;
            if inner != ValueType::Vector {
                let problem =
                    format!("subquery is only allowed on instant vector, got {inner} instead");
                return Err(SyntaxError::new(subquery.span, problem));
            }
        }
        Expr::Unary(unary) => {
            let inner = check(&unary.inner)?;
            if !is_calculable(inner) {
                let problem = format!(
                    "unary expression only allowed on expressions of type scalar or instant \
                     vector, got \"{inner}\""
                );
                return Err(SyntaxError::new(unary.span, problem));
            }
        }
        Expr::Vector(selector) => check_selector(selector)?,
        Expr::Number(_) | Expr::Text(_) => {}
    }
    Ok(expression.value_type())
}

fn is_calculable(value: ValueType) -> bool {
    matches!(value, ValueType::Scalar | ValueType::Vector)
}

fn expect(expression: &Expr, expected: ValueType, context: &str) -> Result<(), SyntaxError> {
    let found = check(expression)?;
    if found == expected {
        return Ok(());
    }
    let problem = format!("expected type {expected} in {context}, got {found}");
    Err(SyntaxError::new(expression.span(), problem))
}

fn check_aggregate(aggregate: &Aggregate) -> Result<(), SyntaxError> {
    expect(&aggregate.input, ValueType::Vector, "aggregation expression")?;
    let Some(parameter) = &aggregate.parameter else { return Ok(()) };
    let is_text = aggregate.operation == Aggregation::CountValues;
    let expected = if is_text { ValueType::Text } else { ValueType::Scalar };
    expect(parameter, expected, "aggregation parameter")
}

fn check_binary(binary: &Binary) -> Result<(), SyntaxError> {
    let Binary { operator, left, right, matching, .. } = binary;
    let (left_type, right_type) = (check(left)?, check(right)?);
    let at_operator = |problem: &str| Err(SyntaxError::new(binary.operator_span, problem));
    let at_expression = |problem: String| Err(SyntaxError::new(binary.span, problem));
    if binary.return_bool && !operator.is_comparison() {
        return at_operator("bool modifier can only be used on comparison operators");
    }
    let is_scalar = [left_type, right_type].map(|side| side == ValueType::Scalar);
    if operator.is_comparison() && !binary.return_bool && is_scalar == [true, true] {
        return at_operator("comparisons between scalars must use BOOL modifier");
    }
    let labels = matching.labels.as_ref();
    let only = labels.filter(|labels| labels.is_only()).map_or(&[][..], |labels| labels.names());
    if let Some(label) = only.iter().find(|label| matching.included.contains(label)) {
        return at_operator(&format!(
            "label {label:?} must not occur in ON and GROUP clause at once"
        ));
    }
    for (side, value) in [(left, left_type), (right, right_type)] {
        if !is_calculable(value) {
            let problem = "binary expression must contain only scalar and instant vector types";
            return Err(SyntaxError::new(side.span(), problem));
        }
    }
    if is_scalar != [false, false] {
        if labels.is_some_and(|labels| !labels.names().is_empty()) {
            return at_expression(
                "vector matching only allowed between instant vectors".to_owned(),
            );
        }
        if matching.has_fill() {
            let problem = "filling in missing series only allowed between instant vectors";
            return at_expression(problem.to_owned());
        }
        if operator.is_set() {
            return at_expression(format!(
                "set operator \"{operator}\" not allowed in binary scalar expression"
            ));
        }
    } else if operator.is_set() && matching.many != ManySide::Neither {
        return at_expression(format!("no grouping allowed for \"{operator}\" operation"));
    } else if operator.is_set() && matching.has_fill() {
        return at_expression("filling in missing series not allowed for set operators".to_owned());
    }
    Ok(())
}

fn check_call(call: &Call) -> Result<(), SyntaxError> {
    let Call { function, arguments, span } = call;
    let (name, types, count) = (function.name, function.arguments, arguments.len());
    let count_min = types.len() - usize::from(function.variadic != 0);
    let count_max =
        count_min + usize::try_from(function.variadic).unwrap_or(usize::MAX - count_min);
    let expected = match count {
        _ if (count_min..=count_max).contains(&count) => None,
        _ if count_min == count_max => Some(count_min.to_string()),
        _ if count < count_min => Some(format!("at least {count_min}")),
        _ => Some(format!("at most {count_max}")),
    };
    if let Some(expected) = expected {
        let problem = format!("expected {expected} argument(s) in call to \"{name}\", got {count}");
        return Err(SyntaxError::new(*span, problem));
    }
    let context = format!("call to function \"{name}\"");
    for (index, argument) in arguments.iter().enumerate() {
        let is_labels = name == "info" && index == 1;
        if let (true, Expr::Vector(selector)) = (is_labels, argument) {
            // The selector may match all info series.
            check_names(selector)?;
        } else if is_labels && argument.value_type() == ValueType::Vector {
            let problem =
                format!("expected label selectors only, got {argument} in call to \"info\"");
            return Err(SyntaxError::new(argument.span(), problem));
        } else {
            expect(argument, types[index.min(types.len().saturating_sub(1))], &context)?;
        }
    }
    Ok(())
}

fn check_selector(selector: &VectorSelector) -> Result<(), SyntaxError> {
    check_names(selector)?;
    let is_empty = |set: &Vec<_>| set.iter().all(may_be_empty);
    if selector.name.is_none() && selector.alternatives.iter().all(is_empty) {
        let problem = "vector selector must contain at least one non-empty matcher";
        return Err(SyntaxError::new(selector.span, problem));
    }
    Ok(())
}

/// Returns true when a series without the label passes the matcher. Patterns are not compiled here
/// and count as not passing; `matchers_of` checks them.
fn may_be_empty(matcher: &Matcher) -> bool {
    match matcher.comparison {
        TagComparison::Equal => matcher.value.is_empty(),
        TagComparison::NotEqual => !matcher.value.is_empty(),
        TagComparison::Pattern | TagComparison::NotPattern => false,
    }
}

fn check_names(selector: &VectorSelector) -> Result<(), SyntaxError> {
    let Some(name) = &selector.name else { return Ok(()) };
    let mut matchers = selector.alternatives.iter().flatten();
    let Some(other) = matchers.find(|matcher| matcher.label == METRIC_TAG) else { return Ok(()) };
    let problem = format!("metric name must not be set twice: {name:?} or {:?}", other.value);
    Err(SyntaxError::new(selector.span, problem))
}

#[cfg(test)]
mod tests {
    use super::super::parser::parse;

    #[test]
    fn type_errors_use_the_words_of_prometheus() {
        for (text, expected) in [
            ("abs()", r#"1:1: expected 1 argument(s) in call to "abs", got 0"#),
            ("round(x, 1, 2)", r#"1:1: expected at most 2 argument(s) in call to "round", got 3"#),
            (
                "label_join(x, \"a\")",
                r#"1:1: expected at least 3 argument(s) in call to "label_join", got 2"#,
            ),
            (
                "1 + rate(x)",
                r#"1:10: expected type range vector in call to function "rate", got instant vector"#,
            ),
            (
                "label_join(x, \"a\", \"b\", \"c\", 1)",
                r#"1:30: expected type string in call to function "label_join", got scalar"#,
            ),
            (
                "info(x, 1 + x)",
                r#"1:9: expected label selectors only, got 1 + x in call to "info""#,
            ),
            (
                "info(x, 1)",
                r#"1:9: expected type instant vector in call to function "info", got scalar"#,
            ),
            (
                "sum(x[5m])",
                "1:5: expected type instant vector in aggregation expression, got range vector",
            ),
            (
                "topk(x, x)",
                "1:6: expected type scalar in aggregation parameter, got instant vector",
            ),
            (
                "count_values(5, x)",
                "1:14: expected type string in aggregation parameter, got scalar",
            ),
            ("x and 1", r#"1:1: set operator "and" not allowed in binary scalar expression"#),
            ("1 == 1", "1:3: comparisons between scalars must use BOOL modifier"),
            ("x + bool y", "1:3: bool modifier can only be used on comparison operators"),
            (
                "x * on(a) group_left(a) y",
                r#"1:3: label "a" must not occur in ON and GROUP clause at once"#,
            ),
            (
                "x + y[5m]",
                "1:5: binary expression must contain only scalar and instant vector types",
            ),
            ("x + on(a) 1", "1:1: vector matching only allowed between instant vectors"),
            (
                "x + fill(0) 1",
                "1:1: filling in missing series only allowed between instant vectors",
            ),
            ("x and fill(0) y", "1:1: filling in missing series not allowed for set operators"),
            ("x or on(a) group_left y", r#"1:1: no grouping allowed for "or" operation"#),
            (
                "-x[5m]",
                r#"1:1: unary expression only allowed on expressions of type scalar or instant vector, got "range vector""#,
            ),
            ("1[5m:]", "1:1: subquery is only allowed on instant vector, got scalar instead"),
            ("{}", "1:1: vector selector must contain at least one non-empty matcher"),
            (
                "sum({a=\"\", b!=\"c\"})",
                "1:5: vector selector must contain at least one non-empty matcher",
            ),
            ("x{__name__=~\"y\"}", r#"1:1: metric name must not be set twice: "x" or "y""#),
        ] {
            let refused = parse(text, usize::MAX).unwrap_err().in_text(text);
            assert_eq!(refused.replace("parse error: ", ""), expected, "{text}");
        }
    }
}
