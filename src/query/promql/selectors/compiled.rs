//! The matchers of selectors, compiled within limits.
//!
//! Must never know: series, values.

use crate::query::{ExpressionLimits, Labels, QueryError};
use crate::{
    model::{METRIC_TAG, TagComparison},
    query::{
        MatchOperator, SeriesMatcher,
        promql::{
            parse::parse,
            syntax::tree::{Expr, Matcher, VectorSelector},
        },
        whole_pattern,
    },
};

/// Parses a series selector such as `up{job="a"}`: one set of matchers for each alternative.
///
/// # Errors
/// When the text is not a selector, a pattern cannot be compiled, or all matchers of a set match an
/// empty value.
pub fn series_matchers(
    text: &str,
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<Vec<SeriesMatcher>>, QueryError> {
    let Expr::Vector(selector) = &parse(text, limits)?.tree else {
        return Err(QueryError::Invalid(format!(
            "parse error: {text} is not a series selector: use metric{{label=\"value\"}}"
        )));
    };
    matchers_of(selector, limits)
}

/// Returns the labels for which a selector requires a single value; empty for a selector with
/// alternatives and for any other expression. An empty value removes a label ([`Labels::new`]).
pub(crate) fn fixed_labels(expression: &Expr) -> Labels {
    let selector = expression.as_selector();
    let Some([set]) = selector.map(|selector| selector.alternatives.as_slice()) else {
        return Labels::default();
    };
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for matcher in set.iter().filter(|matcher| matcher.label != METRIC_TAG) {
        let is_equal = matcher.comparison == TagComparison::Equal;
        // A label with several matchers has no single value.
        if let Some(index) = pairs.iter().position(|(name, _)| *name == matcher.label) {
            pairs[index].1 = "";
        } else {
            pairs.push((&matcher.label, if is_equal { &matcher.value } else { "" }));
        }
    }
    Labels::new(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
}

/// Returns the matchers of a selector, one set for each alternative.
///
/// # Errors
/// When a pattern cannot be compiled, or all matchers of a set match an empty value.
pub(crate) fn matchers_of(
    selector: &VectorSelector,
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<Vec<SeriesMatcher>>, QueryError> {
    let sets = unchecked_matchers(selector, limits)?;
    if sets.iter().any(|set| set.iter().all(|matcher| matcher.matches(""))) {
        return Err(QueryError::Invalid(
            "parse error: vector selector must contain at least one non-empty matcher".to_owned(),
        ));
    }
    Ok(sets)
}

/// Returns the matchers of a selector, which may all match empty values.
///
/// # Errors
/// When a pattern cannot be compiled.
pub(crate) fn unchecked_matchers(
    selector: &VectorSelector,
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<Vec<SeriesMatcher>>, QueryError> {
    let name = selector.name.as_deref().map(|name| SeriesMatcher::equal(METRIC_TAG, name));
    let conditions = |set: &Vec<Matcher>| {
        let matchers = set.iter().map(|matcher| compile_matcher(matcher, limits));
        name.iter().cloned().map(Ok).chain(matchers).collect()
    };
    selector.alternatives.iter().map(conditions).collect()
}

fn compile_matcher(
    matcher: &Matcher,
    limits: &ExpressionLimits<'_>,
) -> Result<SeriesMatcher, QueryError> {
    let value = matcher.value.as_str();
    let operator = match matcher.comparison {
        TagComparison::Equal => MatchOperator::Equal(value.to_owned()),
        TagComparison::NotEqual => MatchOperator::NotEqual(value.to_owned()),
        TagComparison::Pattern => MatchOperator::Pattern(whole_pattern(value, limits)?),
        TagComparison::NotPattern => MatchOperator::NotPattern(whole_pattern(value, limits)?),
    };
    Ok(SeriesMatcher { tag: matcher.label.clone(), operator })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::promql::tests::LIMITS;

    #[test]
    fn matchers_are_compiled() {
        let all = series_matchers(r#"up{a=~"x|y", b!~ '(?i)z', c="=~", d != "q"}"#, &LIMITS);
        let all = all.unwrap();
        let all_match = |values: [&str; 4]| {
            let tags = ["a", "b", "c", "d"];
            tags.iter().zip(values).all(|(tag, value)| {
                let of_tag = all[0].iter().filter(|matcher| matcher.tag == *tag);
                of_tag.clone().count() == 1 && of_tag.clone().all(|m| m.matches(value))
            })
        };
        assert!(all_match(["x", "", "=~", ""]));
        assert!(!all_match(["xy", "", "=~", ""]));
        assert!(!all_match(["x", "Z", "=~", ""]));
    }
}
