//! Labels: what tells one series of an answer from another. Cheap to copy.
//!
//! Must never know: values, times, the store's keys.

use std::{collections::HashSet, fmt, sync::Arc};

use foldhash::fast::RandomState;

use crate::model::{METRIC_TAG, SeriesKey};

/// What belongs to a metric and no longer fits what is calculated from it: its name, and its type
/// and unit where the sender writes them as labels.
const OF_METRIC: [&str; 3] = [METRIC_TAG, "__type__", "__unit__"];
/// What a label takes besides its texts, and a series besides its labels, about.
const LABEL_BYTES: usize = 64;
const SERIES_BYTES: usize = 256;

/// Names and values in order of the names, `__name__` among them where the series has one. A
/// label with an empty value is the same as none, and is never kept.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Labels(Arc<[(Arc<str>, Arc<str>)]>);

/// Names and values that the labels of many series share.
#[derive(Debug, Default)]
pub struct Texts(HashSet<Arc<str>, RandomState>);

impl Texts {
    fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.0.insert(new.clone());
        new
    }
}

impl Labels {
    /// Puts the labels in order, without the empty ones. Of a name given twice the last counts.
    pub fn new(mut pairs: Vec<(Arc<str>, Arc<str>)>) -> Self {
        pairs.sort_by(|one, next| one.0.cmp(&next.0));
        let mut kept: Vec<(Arc<str>, Arc<str>)> = Vec::with_capacity(pairs.len());
        for pair in pairs {
            match kept.last_mut() {
                Some(last) if last.0 == pair.0 => *last = pair,
                _ => kept.push(pair),
            }
        }
        kept.retain(|(_, value)| !value.is_empty());
        Self(kept.into())
    }

    /// The labels of a stored series: its tags, and its metric as `__name__`.
    pub fn of_key(key: &SeriesKey, texts: &mut Texts) -> Self {
        let metric = (METRIC_TAG, key.metric());
        let all = std::iter::once(metric).chain(key.tags());
        Self::new(all.map(|(name, value)| (texts.shared(name), texts.shared(value))).collect())
    }

    /// What the labels of a stored series take, at most: less where they share texts with others.
    pub fn bytes_of_key(key: &SeriesKey) -> usize {
        let texts = key.tags().map(|(name, value)| LABEL_BYTES + name.len() + value.len());
        SERIES_BYTES + key.metric().len() + texts.sum::<usize>()
    }

    /// Name and value of each label, in order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The value of a label; empty when there is no such label.
    pub fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(own, _)| **own == *name);
        found.map_or("", |(_, value)| value)
    }

    /// The metric's name; empty when there is none.
    pub fn metric(&self) -> &str {
        self.get(METRIC_TAG)
    }

    /// Whether there is no label at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Only the labels for which `keep` says so.
    pub(crate) fn filtered(&self, keep: impl Fn(&str) -> bool) -> Self {
        if self.0.iter().all(|(name, _)| keep(name)) {
            return self.clone();
        }
        Self(self.0.iter().filter(|(name, _)| keep(name)).cloned().collect())
    }

    /// Without the metric's name, type and unit.
    pub(crate) fn without_metric(&self) -> Self {
        self.filtered(|name| !OF_METRIC.contains(&name))
    }

    /// Only the labels named.
    pub(crate) fn only(&self, names: &[String]) -> Self {
        self.filtered(|own| names.iter().any(|name| name == own))
    }

    /// Neither the labels named nor the metric's name, type and unit.
    pub(crate) fn without(&self, names: &[String]) -> Self {
        self.filtered(|own| !OF_METRIC.contains(&own) && !names.iter().any(|name| name == own))
    }

    /// As Prometheus writes labels in messages: the metric's name among them.
    pub(crate) fn in_braces(&self) -> String {
        let all: Vec<_> = self.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        format!("{{{}}}", all.join(", "))
    }

    /// With one label set to a value; an empty one takes it away.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        if self.get(name) == value {
            return self.clone();
        }
        let mut pairs = self.0.to_vec();
        pairs.push((name.into(), value.into()));
        Self::new(pairs)
    }
}

impl fmt::Display for Labels {
    /// As Prometheus writes a series: `metric{name="value", ...}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metric = self.metric();
        f.write_str(metric)?;
        let mut separator = "{";
        for (name, value) in self.iter().filter(|(name, _)| *name != METRIC_TAG) {
            write!(f, "{separator}{name}={value:?}")?;
            separator = ", ";
        }
        match (separator, metric) {
            (", ", _) => f.write_str("}"),
            (_, "") => f.write_str("{}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        Labels::new(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    #[test]
    fn labels_are_sorted_and_an_empty_one_is_none() {
        let all = labels(&[("b", "2"), (METRIC_TAG, "up"), ("a", ""), ("c", "1"), ("c", "3")]);
        assert_eq!(all.to_string(), r#"up{b="2", c="3"}"#);
        assert_eq!(all.get("a"), "");
        assert_eq!(all.with("b", "").to_string(), r#"up{c="3"}"#);
        assert_eq!(all.with("a", "x").iter().nth(1), Some(("a", "x")));
        assert_eq!(all.without_metric(), labels(&[("c", "3"), ("b", "2")]));
        assert_eq!(all.only(&["c".into()]), labels(&[("c", "3")]));
        assert_eq!(all.without(&["c".into()]), labels(&[("b", "2")]));
        assert_eq!(Labels::default().to_string(), "{}");
        assert_eq!(labels(&[(METRIC_TAG, "up")]).to_string(), "up");
        let typed = all.with("__type__", "gauge").with("__unit__", "bytes");
        assert_eq!(typed.without_metric(), all.without_metric());
        assert_eq!(typed.without(&["c".into()]), labels(&[("b", "2")]));
        assert_eq!(all.in_braces(), r#"{__name__="up", b="2", c="3"}"#);
    }
}
