//! Selectors of series by their keys: label matchers as in PromQL, all of which must match.
//!
//! Must never know: the text from which a selector was parsed, the purpose of a selector.

use std::fmt;

use regex::{Regex, RegexBuilder};

use super::{METRIC_TAG, ProjectName, SeriesKey, go_regex};

/// The tag of a matcher that compares the project of a series; no tag of a series has this name.
pub const PROJECT_TAG: &str = "\u{1}project";
/// The size limit of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A comparison with the value of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagComparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`, the whole value
    Pattern,
    /// `!~`, the whole value
    NotPattern,
}

impl TagComparison {
    /// All comparisons. Files store a comparison as its position in this list, so the order must
    /// not change.
    pub const ALL: [Self; 4] = [Self::Equal, Self::NotEqual, Self::Pattern, Self::NotPattern];

    /// Returns the operator as in PromQL.
    pub fn operator(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Pattern => "=~",
            Self::NotPattern => "!~",
        }
    }
}

/// A condition on a tag of a series. The metric's name is the tag [`METRIC_TAG`], the project the
/// tag [`PROJECT_TAG`]; a missing tag matches like an empty one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagMatcher {
    /// The name of the tag.
    pub tag: String,
    /// The comparison.
    pub comparison: TagComparison,
    /// The value, or the pattern.
    pub value: String,
}

/// Matchers that a series must all match.
#[derive(Debug, Clone)]
pub struct KeySelector {
    matchers: Vec<TagMatcher>,
    /// The compiled pattern of each matcher that has one.
    patterns: Vec<Option<Regex>>,
}

impl PartialEq for KeySelector {
    fn eq(&self, other: &Self) -> bool {
        self.matchers == other.matchers
    }
}

impl Eq for KeySelector {}

impl KeySelector {
    /// Compiles the patterns of the matchers.
    ///
    /// # Errors
    /// When a pattern is invalid or too large.
    pub fn new(matchers: Vec<TagMatcher>) -> Result<Self, String> {
        let compile = |matcher: &TagMatcher| match matcher.comparison {
            TagComparison::Equal | TagComparison::NotEqual => Ok(None),
            TagComparison::Pattern | TagComparison::NotPattern => {
                let whole = format!("^(?s:{})$", go_regex::translate_pattern(&matcher.value));
                let built = RegexBuilder::new(&whole).size_limit(PATTERN_BYTES_MAX).build();
                built.map(Some).map_err(|cause| format!("pattern {:?}: {cause}", matcher.value))
            }
        };
        let patterns = matchers.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { matchers, patterns })
    }

    /// Adds the condition that a series belongs to a project.
    #[must_use]
    pub fn in_project(mut self, project: &ProjectName) -> Self {
        let (tag, comparison) = (PROJECT_TAG.to_owned(), TagComparison::Equal);
        self.matchers.push(TagMatcher { tag, comparison, value: project.to_string() });
        self.patterns.push(None);
        self
    }

    /// Returns the matchers.
    pub fn matchers(&self) -> &[TagMatcher] {
        &self.matchers
    }

    /// Returns true when a series of a project matches all matchers.
    pub fn selects(&self, project: &str, key: &SeriesKey) -> bool {
        self.matchers.iter().zip(&self.patterns).all(|(matcher, pattern)| {
            let value = match &*matcher.tag {
                METRIC_TAG => key.metric(),
                PROJECT_TAG => project,
                tag => key.tag(tag).unwrap_or_default(),
            };
            let matches = pattern
                .as_ref()
                .map_or_else(|| value == matcher.value, |pattern| pattern.is_match(value));
            let negated = [TagComparison::NotEqual, TagComparison::NotPattern];
            matches != negated.contains(&matcher.comparison)
        })
    }
}

impl fmt::Display for KeySelector {
    /// Writes the selector as in PromQL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, matcher) in self.matchers.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            let TagMatcher { tag, comparison, value } = matcher;
            let tag = if tag == PROJECT_TAG { "project" } else { tag };
            write!(f, "{comma}{tag}{}{value:?}", comparison.operator())?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DEFAULT_PROJECT, SeriesLimits};
    use TagComparison::{Equal, NotEqual, NotPattern, Pattern};

    #[test]
    fn a_series_matches_all_matchers_and_a_missing_tag_is_an_empty_one() {
        let key = |metric, tags: &[(&str, &str)]| {
            SeriesKey::new(metric, tags.iter().copied(), &SeriesLimits::default()).unwrap()
        };
        let selector = |matchers: &[(&str, TagComparison, &str)]| {
            let matcher = |(tag, comparison, value): &(&str, TagComparison, &str)| TagMatcher {
                tag: (*tag).to_owned(),
                comparison: *comparison,
                value: (*value).to_owned(),
            };
            KeySelector::new(matchers.iter().map(matcher).collect())
        };
        let (web, db) = (key("debug_x", &[("host", "web1")]), key("debug_x", &[]));
        for (matchers, expected) in [
            (&[(METRIC_TAG, Pattern, "debug_.*")][..], [true, true]),
            (&[(METRIC_TAG, Pattern, "debug_")], [false, false]),
            (&[(METRIC_TAG, Pattern, "debug_.*"), ("host", NotEqual, "")], [true, false]),
            (&[("host", Equal, "")], [false, true]),
            (&[("host", NotPattern, "web.*")], [false, true]),
            (&[], [true, true]),
        ] {
            let selector = selector(matchers).unwrap();
            assert_eq!(
                [&web, &db].map(|key| selector.selects(DEFAULT_PROJECT, key)),
                expected,
                "{selector}"
            );
        }
        assert!(selector(&[("host", Pattern, "(")]).is_err());
        let shown = selector(&[(METRIC_TAG, Pattern, "a\"b"), ("host", NotEqual, "x")]).unwrap();
        assert_eq!(shown.to_string(), r#"{__name__=~"a\"b", host!="x"}"#);
    }
}
