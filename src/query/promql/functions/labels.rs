//! Functions that derive labels from other labels.
//!
//! Must never know: the store, the tree.

use regex::Captures;

use crate::query::QueryError;
use crate::{
    model::METRIC_TAG,
    query::promql::{
        context::bounds::Bounds,
        value::{
            series::{Series, join_same},
            text::{displayable, is_label_name},
        },
    },
};

/// Evaluates `label_replace`; the texts are destination, replacement, source and pattern.
pub(super) fn replace(
    mut series: Vec<Series>,
    texts: &[String],
    bounds: &Bounds<'_>,
) -> Result<Vec<Series>, QueryError> {
    let [destination, replacement, source, pattern] = texts else {
        return Err(QueryError::Invalid("parse error: label_replace needs 5 arguments".into()));
    };
    let regex = bounds.pattern(pattern).map_err(|cause| match cause {
        QueryError::Invalid(_) => {
            execution_error(format!("invalid regular expression in label_replace(): {pattern}"))
        }
        QueryError::Execution(_)
        | QueryError::TooMuch(_)
        | QueryError::Busy(_)
        | QueryError::Timeout(_)
        | QueryError::Store(_) => cause,
    })?;
    check_name(destination, "destination label name in label_replace()")?;
    let pieces = pieces(replacement);
    for entry in &mut series {
        bounds.check_time()?;
        let Some(found) = regex.captures(entry.labels.get(source)) else { continue };
        let value = label_value(pieces.iter().map(|piece| piece.of(&found)), bounds)?;
        set(entry, destination, &value);
    }
    join_same(series)
}

/// Evaluates `label_join`; the texts are destination, separator and sources.
pub(super) fn join(
    mut series: Vec<Series>,
    texts: &[String],
    bounds: &Bounds<'_>,
) -> Result<Vec<Series>, QueryError> {
    let [destination, separator, sources @ ..] = texts else {
        return Err(QueryError::Invalid("parse error: label_join needs 3 arguments".into()));
    };
    check_name(destination, "destination label name in label_join()")?;
    for source in sources {
        check_name(source, "source label name in label_join()")?;
    }
    for entry in &mut series {
        bounds.check_time()?;
        let texts = sources.iter().enumerate().flat_map(|(index, source)| {
            let between = if index > 0 { separator.as_str() } else { "" };
            [between, entry.labels.get(source)]
        });
        let value = label_value(texts, bounds)?;
        set(entry, destination, &value);
    }
    join_same(series)
}

/// Builds the value of a label. Memory is charged first, because a short query could build long
/// values.
fn label_value<'a>(
    parts: impl Iterator<Item = &'a str> + Clone,
    bounds: &Bounds<'_>,
) -> Result<String, QueryError> {
    let bytes: usize = parts.clone().map(str::len).sum();
    // The text exists twice: as a string and as a label.
    bounds.reserve(2 * bytes)?;
    let mut text = String::with_capacity(bytes);
    text.extend(parts);
    Ok(text)
}

fn set(series: &mut Series, name: &str, value: &str) {
    series.labels = series.labels.with(name, value);
    if name == METRIC_TAG {
        series.drop_metric = false;
    }
}

fn check_name(name: &str, what: &str) -> Result<(), QueryError> {
    if is_label_name(name) {
        Ok(())
    } else {
        Err(execution_error(format!("invalid {what}: {}", displayable(name))))
    }
}

fn execution_error(text: String) -> QueryError {
    QueryError::Execution(text)
}

/// A part of a replacement.
#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Text(&'a str),
    Group(usize),
    Named(&'a str),
}

impl<'a> Piece<'a> {
    /// Returns the text of the part for a match.
    fn of(&self, found: &'a Captures<'_>) -> &'a str {
        let group = match *self {
            Self::Text(text) => return text,
            Self::Group(index) => found.get(index),
            Self::Named(name) => found.name(name),
        };
        group.map_or("", |group| group.as_str())
    }
}

/// Parses a replacement with Go's rules: `$1x` is the group `1x`, `$$` is a `$`, and so is a `$`
/// that is not followed by a name.
fn pieces(mut replacement: &str) -> Vec<Piece<'_>> {
    let mut out = Vec::new();
    while let Some((text, after)) = replacement.split_once('$') {
        out.push(Piece::Text(text));
        replacement = if let Some(after) = after.strip_prefix('$') {
            out.push(Piece::Text("$"));
            after
        } else if let Some((name, after)) = group_name(after) {
            let leading_zero = name.len() > 1 && name.starts_with('0');
            let index = name.parse().ok().filter(|_| !leading_zero);
            out.push(index.map_or(Piece::Named(name), Piece::Group));
            after
        } else {
            out.push(Piece::Text("$"));
            after
        };
    }
    out.push(Piece::Text(replacement));
    out
}

/// Returns the name after a `$`, and the rest of the text.
fn group_name(text: &str) -> Option<(&str, &str)> {
    let (text, braces) = text.strip_prefix('{').map_or((text, false), |text| (text, true));
    let is_name_char = |c: char| c.is_alphanumeric() || c == '_';
    let (name, after) = text.split_at(text.find(|c| !is_name_char(c)).unwrap_or(text.len()));
    let after = if braces { after.strip_prefix('}')? } else { after };
    (!name.is_empty()).then_some((name, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Budget, ExpressionLimits, Labels, promql::tests::LIMITS};

    fn series(labels: &[(&str, &str)]) -> Series {
        let labels = labels.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Series::new(Labels::new(labels.collect()), true, vec![1.0])
    }

    #[test]
    fn labels_are_built_from_other_labels() {
        let bounds = Bounds::new(&LIMITS);
        let check = |texts: [&str; 4], expected: &str| {
            let texts = texts.map(str::to_owned);
            let out = replace(vec![series(&[("a", "x-1"), ("b", "2")])], &texts, &bounds).unwrap();
            assert_eq!(out[0].labels.to_string(), expected, "{texts:?}");
        };
        check(["c", "$1", "a", "(.*)-.*"], r#"{a="x-1", b="2", c="x"}"#);
        check(["c", "$1", "a", "y"], r#"{a="x-1", b="2"}"#);
        check(["c", "${1}z$", "a", "(.).*"], r#"{a="x-1", b="2", c="xz$"}"#);
        check(["c", "$1z", "a", "(.).*"], r#"{a="x-1", b="2"}"#);
        check(["b", "", "a", ".*"], r#"{a="x-1"}"#);
        check(["b", "$$1${}$01${1", "a", "(.).*"], r#"{a="x-1", b="$1${}${1"}"#);
        check(["b", "${n}$0", "a", "(?P<n>.).*"], r#"{a="x-1", b="xx-1"}"#);
        check(["b-\u{e9}", "y", "a", ".*"], "{a=\"x-1\", b=\"2\", b-\u{e9}=\"y\"}");
        check(["b", "none", "c", ""], r#"{a="x-1", b="none"}"#);
        let long_text = "x".repeat(1 << 20);
        let budget = Budget::of_memory(100 << 20);
        let scarce_limits = ExpressionLimits { budget: &budget, ..LIMITS };
        let scarce = Bounds::new(&scarce_limits);
        let expanding = ["c", &"$0".repeat(100), "a", ".*"].map(str::to_owned);
        let refused = replace(vec![series(&[("a", &long_text)])], &expanding, &scarce).unwrap_err();
        assert!(matches!(refused, QueryError::Busy(_)), "{refused}");
        let sources: Vec<_> = ["c", ""].into_iter().chain(["a"; 100]).map(str::to_owned).collect();
        assert!(join(vec![series(&[("a", &long_text)])], &sources, &scarce).is_err());
        let bad = ["", "", "a", ""].map(str::to_owned);
        assert!(replace(vec![], &bad, &bounds).is_err());
        let texts = ["c", "-", "b", "a"].map(str::to_owned);
        let out = join(vec![series(&[("a", "1"), ("b", "2")])], &texts, &bounds).unwrap();
        assert_eq!(out[0].labels.get("c"), "2-1");
    }
}
