//! What the tree says of a selector: its matchers, compiled within bounds, and how it is extended.
//!
//! Must never know: series, values.

use promql_parser::{
    label::{self, MatchOp},
    parser::{Expr, MatrixSelector, VectorSelector},
};

use super::{
    extensions::{ANCHORED, EXTENSION_LABEL},
    guard::unmarked,
    parse,
};
use crate::{
    model::METRIC_TAG,
    query::{
        MatchOperator, SeriesMatcher,
        promql::{
            request::PromqlLimits,
            value::{error::PromqlError, labels::Labels, windows::Extension},
        },
        whole_pattern,
    },
};

/// The matchers of a series selector such as `up{job="a"}`, for lists of series: one set for each
/// alternative.
///
/// # Errors
/// When it is no selector, or all of its matchers match an empty value.
pub fn series_matchers(
    selector: &str,
    limits: &PromqlLimits<'_>,
) -> Result<Vec<Vec<SeriesMatcher>>, PromqlError> {
    let expression = parse(selector, limits)?;
    let Expr::VectorSelector(selector) = &expression else {
        return Err(PromqlError::BadData(format!(
            "parse error: {selector} is no series selector: write metric{{label=\"value\"}}"
        )));
    };
    matchers_of(selector, limits)
}

/// An expression without the parentheses around it.
pub(crate) fn without_parens(mut expression: &Expr) -> &Expr {
    while let Expr::Paren(inner) = expression {
        expression = &inner.expr;
    }
    expression
}

/// How a selector is extended, when it is.
pub(crate) fn extension(selector: &VectorSelector) -> Option<Extension> {
    let all = &selector.matchers;
    let mut matchers = all.matchers.iter().chain(all.or_matchers.iter().flatten());
    let found = matchers.find(|matcher| matcher.name == EXTENSION_LABEL)?;
    Some(if found.value == ANCHORED { Extension::Anchored } else { Extension::Smoothed })
}

/// The extended range selector that an expression is.
pub(crate) fn extended(expression: &Expr) -> Option<(&MatrixSelector, Extension)> {
    let Expr::MatrixSelector(matrix) = without_parens(expression) else { return None };
    Some((matrix, extension(&matrix.vs)?))
}

/// The labels that a selector names a single value of; none of any other expression.
pub(crate) fn named_labels(expression: &Expr) -> Labels {
    let selector = match without_parens(expression) {
        Expr::VectorSelector(selector) => selector,
        Expr::MatrixSelector(matrix) => &matrix.vs,
        Expr::Paren(_)
        | Expr::Aggregate(_)
        | Expr::Unary(_)
        | Expr::Binary(_)
        | Expr::Subquery(_)
        | Expr::NumberLiteral(_)
        | Expr::StringLiteral(_)
        | Expr::Call(_)
        | Expr::Extension(_) => return Labels::default(),
    };
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for matcher in &selector.matchers.matchers {
        if [METRIC_TAG, EXTENSION_LABEL].contains(&matcher.name.as_str()) {
            continue;
        }
        let equal = matches!(matcher.op, MatchOp::Equal) && unmarked(&matcher.value).0 == "=";
        // A label named twice has no single value.
        if let Some(place) = pairs.iter().position(|(name, _)| *name == matcher.name) {
            pairs[place].1 = "";
        } else {
            pairs.push((&matcher.name, if equal { &matcher.value } else { "" }));
        }
    }
    Labels::new(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
}

/// The first selector within an expression.
pub(crate) fn first_selector(expression: &Expr) -> Option<&VectorSelector> {
    match expression {
        Expr::VectorSelector(selector) => Some(selector),
        Expr::MatrixSelector(matrix) => Some(&matrix.vs),
        Expr::Paren(inner) => first_selector(&inner.expr),
        Expr::Unary(inner) => first_selector(&inner.expr),
        Expr::Subquery(inner) => first_selector(&inner.expr),
        Expr::Aggregate(inner) => {
            first_selector(&inner.expr).or_else(|| first_selector(inner.param.as_deref()?))
        }
        Expr::Binary(inner) => first_selector(&inner.lhs).or_else(|| first_selector(&inner.rhs)),
        Expr::Call(call) => call.args.args.iter().find_map(|argument| first_selector(argument)),
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::Extension(_) => None,
    }
}

/// How many selectors there are within an expression.
pub(crate) fn selectors_in(expression: &Expr) -> usize {
    match expression {
        Expr::VectorSelector(_) | Expr::MatrixSelector(_) => 1,
        Expr::Paren(inner) => selectors_in(&inner.expr),
        Expr::Unary(inner) => selectors_in(&inner.expr),
        Expr::Subquery(inner) => selectors_in(&inner.expr),
        Expr::Aggregate(inner) => {
            selectors_in(&inner.expr) + inner.param.as_deref().map_or(0, selectors_in)
        }
        Expr::Binary(inner) => selectors_in(&inner.lhs) + selectors_in(&inner.rhs),
        Expr::Call(call) => call.args.args.iter().map(|argument| selectors_in(argument)).sum(),
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::Extension(_) => 0,
    }
}

/// The matchers of a selector of the tree, one set for each alternative.
pub(crate) fn matchers_of(
    selector: &VectorSelector,
    limits: &PromqlLimits<'_>,
) -> Result<Vec<Vec<SeriesMatcher>>, PromqlError> {
    let sets = conditions_of(selector, limits)?;
    if sets.iter().any(|set| set.iter().all(|matcher| matcher.matches(""))) {
        return Err(PromqlError::BadData(
            "parse error: vector selector must contain at least one non-empty matcher".to_owned(),
        ));
    }
    Ok(sets)
}

/// The same, also where nothing but empty values is asked for.
pub(crate) fn conditions_of(
    selector: &VectorSelector,
    limits: &PromqlLimits<'_>,
) -> Result<Vec<Vec<SeriesMatcher>>, PromqlError> {
    let alternatives = if selector.matchers.or_matchers.is_empty() {
        std::slice::from_ref(&selector.matchers.matchers)
    } else {
        &selector.matchers.or_matchers
    };
    let name = selector.name.as_deref().map(|name| SeriesMatcher::equal(METRIC_TAG, name));
    alternatives
        .iter()
        .map(|own| {
            let mut set: Vec<_> = name.iter().cloned().collect();
            for matcher in own.iter().filter(|matcher| matcher.name != EXTENSION_LABEL) {
                set.push(matcher_of(matcher, limits)?);
            }
            Ok(set)
        })
        .collect()
}

fn matcher_of(
    matcher: &label::Matcher,
    limits: &PromqlLimits<'_>,
) -> Result<SeriesMatcher, PromqlError> {
    let compile = |pattern| whole_pattern(pattern, limits);
    let (operator, value) = unmarked(&matcher.value);
    let operator = match (&matcher.op, operator) {
        (MatchOp::Equal, "=~") | (MatchOp::Re(_), _) => MatchOperator::Pattern(compile(value)?),
        (MatchOp::Equal, "!~") | (MatchOp::NotRe(_), _) => {
            MatchOperator::NotPattern(compile(value)?)
        }
        (MatchOp::Equal, "!=") | (MatchOp::NotEqual, _) => {
            MatchOperator::NotEqual(value.to_owned())
        }
        (MatchOp::Equal, _) => MatchOperator::Equal(value.to_owned()),
    };
    Ok(SeriesMatcher { tag: matcher.name.clone(), operator })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::promql::tests::LIMITS;

    #[test]
    fn patterns_are_not_compiled_by_the_parser() {
        let all = series_matchers(r#"up{a=~"x|y", b!~ '(?i)z', c="=~", d != "q"}"#, &LIMITS);
        let all = all.unwrap();
        let check = |values: [&str; 4]| {
            let tags = ["a", "b", "c", "d"];
            tags.iter().zip(values).all(|(tag, value)| {
                let of_tag = all[0].iter().filter(|matcher| matcher.tag == *tag);
                of_tag.clone().count() == 1 && of_tag.clone().all(|m| m.matches(value))
            })
        };
        assert!(check(["x", "", "=~", ""]));
        assert!(!check(["xy", "", "=~", ""]));
        assert!(!check(["x", "Z", "=~", ""]));
    }
}
