//! Patterns of metrics in the settings: a name, or a prefix followed by `*`.
//!
//! Must never know: the series of the store.

/// A metric's name, or a prefix of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricPattern {
    text: String,
    is_prefix: bool,
}

impl MetricPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The pattern is empty, or has a `*` before its end; the error contains a remedy.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        let prefix = pattern.strip_suffix('*');
        let text = prefix.unwrap_or(pattern);
        if text.contains('*') || pattern.is_empty() {
            let problem = "is neither a metric nor a prefix such as \"debug_*\"";
            return Err(format!("{pattern:?} {problem}"));
        }
        Ok(Self { text: text.to_owned(), is_prefix: prefix.is_some() })
    }

    /// Returns true when the pattern selects a metric.
    pub fn matches(&self, metric: &str) -> bool {
        if self.is_prefix { metric.starts_with(&self.text) } else { metric == self.text }
    }

    /// Returns the order of patterns in which the most specific one is the first: names, then
    /// prefixes by descending length.
    pub fn specificity(&self) -> impl Ord + use<> {
        (self.is_prefix, std::cmp::Reverse(self.text.len()))
    }
}
