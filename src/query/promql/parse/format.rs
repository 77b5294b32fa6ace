//! Expressions as people like to read them.
//!
//! Must never know: values, the store.

use promql_parser::parser::Expr;

use super::{guard::MARKS, parse};
use crate::query::promql::{request::PromqlLimits, value::error::PromqlError};

/// An expression, formatted over several lines where it is long.
///
/// # Errors
/// When it is no expression.
pub fn format_promql(query: &str, limits: &PromqlLimits<'_>) -> Result<String, PromqlError> {
    Ok(shown(&parse(query, limits)?))
}

/// The same of what is parsed.
pub(super) fn shown(expression: &Expr) -> String {
    let with_operator = |text: String, (operator, mark): (&str, &str)| {
        text.replace(&format!("=\"{mark}"), &format!("{operator}\""))
    };
    MARKS.into_iter().fold(expression.prettify(), with_operator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::promql::tests::LIMITS;

    #[test]
    fn expressions_are_formatted_with_their_patterns() {
        let check = |query: &str, expected: &str| {
            assert_eq!(format_promql(query, &LIMITS).unwrap(), expected, "{query}");
        };
        check("foo/bar", "foo / bar");
        check("sum by(a)(rate(x[5m]))", "sum by (a) (rate(x[5m]))");
        check(r#"up{a=~"x|y",b!~"z",c!="d"}"#, r#"up{a=~"x|y",b!~"z",c!="d"}"#);
        assert!(format_promql("sum(", &LIMITS).is_err());
    }
}
