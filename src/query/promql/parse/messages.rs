//! The parser's complaints in Prometheus' words, which people search for.
//!
//! Must never know: the tree.

/// What the parser says, and what Prometheus says.
const WORDS: [(&str, &str); 8] = [
    ("expected type vector", "expected type instant vector"),
    ("expected type matrix", "expected type range vector"),
    ("got vector", "got instant vector"),
    ("got matrix", "got range vector"),
    ("only allowed on vector", "only allowed on instant vector"),
    ("between vectors", "between instant vectors"),
    (
        "an vector selector or matrix selector",
        "an instant vector selector or range vector selector",
    ),
    ("scalar or vector, got: matrix", "scalar or instant vector, got \"range vector\""),
];
/// Complaints whose single quotes enclose names.
const OF_NAMES: [&str; 6] = [
    "argument(s) in call to",
    "in call to function",
    "unknown function with name",
    "must not",
    "set operator",
    "no grouping allowed",
];

/// A complaint in Prometheus' words.
pub(crate) fn of_prometheus(cause: &str) -> String {
    let words = WORDS.iter().fold(cause.to_owned(), |text, (own, new)| text.replace(own, new));
    let of_names = OF_NAMES.iter().any(|part| words.contains(part));
    if of_names { words.replace('\'', "\"") } else { words }
}

#[cfg(test)]
mod tests {
    use crate::query::promql::{parse, tests::LIMITS};

    #[test]
    fn complaints_are_in_prometheus_words() {
        for (query, expected) in [
            ("abs()", r#"expected 1 argument(s) in call to "abs", got 0"#),
            (
                "rate(up)",
                r#"expected type range vector in call to function "rate", got instant vector"#,
            ),
            (
                "sum(up[5m])",
                "expected type instant vector in aggregation expression, got range vector",
            ),
            ("no(up)", r#"unknown function with name "no""#),
            ("up and 1", r#"set operator "and" not allowed in binary scalar expression"#),
            ("1[5m:]", "subquery is only allowed on instant vector, got scalar instead"),
            (
                "-up[5m]",
                "unary expression only allowed on expressions of type scalar or instant vector, \
                 got \"range vector\"",
            ),
            ("up{__name__=\"up\"}", r#"metric name must not be set twice: "up" or "up""#),
        ] {
            let error = parse::parse(query, &LIMITS).unwrap_err().to_string();
            let (place, error) = error.split_once("parse error: ").unwrap();
            assert_eq!(error, expected);
            // Of calls the place is known.
            assert_eq!(
                place,
                if expected.contains("call") || query == "no(up)" { "1:1: " } else { "" }
            );
        }
    }
}
