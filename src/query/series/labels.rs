//! Labels, which identify the series of an answer. Cheap to clone.
//!
//! Must never know: values, times, the store's keys.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use crate::{
    model::{METRIC_TAG, SeriesKey},
    query::wire::{count, put_count, put_text, text},
};

/// Labels that describe the metric and do not apply to values calculated from it: its name, and its
/// type and unit if the sender writes them as labels.
pub(crate) const METRIC_LABELS: [&str; 3] = [METRIC_TAG, "__type__", "__unit__"];
/// Approximate memory of a label, without its texts.
const LABEL_BYTES: usize = 64;
/// Approximate memory of a series, without its labels.
const SERIES_BYTES: usize = 256;

/// Names and values in order of the names, including `__name__` if the series has one. A label with
/// an empty value is a missing label and is never stored.
#[derive(Clone)]
pub struct Labels(LabelStorage);

#[derive(Clone)]
enum LabelStorage {
    /// The labels of a stored series: its key, with or without the metric.
    Stored(SeriesKey, MetricPresence),
    Built(Arc<[(Arc<str>, Arc<str>)]>),
}

/// Presence of the metric's name.
#[derive(Clone, Copy, PartialEq)]
enum MetricPresence {
    Kept,
    Dropped,
}

impl Labels {
    /// Sorts labels and removes empty labels. For duplicate names, the last value wins.
    pub fn new(mut pairs: Vec<(Arc<str>, Arc<str>)>) -> Self {
        pairs.sort_by(|left, right| left.0.cmp(&right.0));
        let mut remaining: Vec<(Arc<str>, Arc<str>)> = Vec::with_capacity(pairs.len());
        for pair in pairs {
            match remaining.last_mut() {
                Some(last) if last.0 == pair.0 => *last = pair,
                _ => remaining.push(pair),
            }
        }
        remaining.retain(|(_, value)| !value.is_empty());
        Self(LabelStorage::Built(remaining.into()))
    }

    /// Returns the labels of a stored series: its tags, and its metric as `__name__`.
    pub fn of_key(key: SeriesKey) -> Self {
        Self(LabelStorage::Stored(key, MetricPresence::Kept))
    }

    /// Returns the maximum memory of the labels of a stored series. The labels take less memory
    /// until they are changed.
    pub fn bytes_of_key(key: &SeriesKey) -> usize {
        SERIES_BYTES + key.as_bytes().len() + key.tags_count() * LABEL_BYTES
    }

    /// Returns the approximate memory of the labels.
    pub(crate) fn bytes(&self) -> usize {
        let texts = self.iter().map(|(name, value)| LABEL_BYTES + name.len() + value.len());
        SERIES_BYTES + texts.sum::<usize>()
    }

    /// Writes the names and values, for another node.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_count(self.iter().count(), out);
        for (name, value) in self.iter() {
            put_text(name, out);
            put_text(value, out);
        }
    }

    /// Reads the labels that another node wrote; `None` when the bytes are damaged.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let mut labels = Vec::new();
        for _ in 0..count(bytes)? {
            labels.push((text(bytes)?.into(), text(bytes)?.into()));
        }
        Some(Self::new(labels))
    }

    /// Returns the name and value of each label, in order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let (stored, built) = match &self.0 {
            LabelStorage::Stored(key, metric) => (Some((key, *metric)), &[][..]),
            LabelStorage::Built(pairs) => (None, &**pairs),
        };
        let built = built.iter().map(|(name, value)| (&**name, &**value));
        stored.into_iter().flat_map(|(key, metric)| with_metric(key, metric)).chain(built)
    }

    /// Returns the value of a label; empty when the label is missing.
    pub fn get(&self, name: &str) -> &str {
        match &self.0 {
            LabelStorage::Stored(key, MetricPresence::Kept) if name == METRIC_TAG => key.metric(),
            LabelStorage::Stored(key, _) => key.tag(name).unwrap_or_default(),
            LabelStorage::Built(pairs) => {
                let found = pairs.iter().find(|(label, _)| **label == *name);
                found.map_or("", |(_, value)| value)
            }
        }
    }

    /// Returns the metric's name; empty when it is missing.
    pub fn metric(&self) -> &str {
        self.get(METRIC_TAG)
    }

    /// Returns true when there are no labels.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Returns the labels whose names `keep` accepts.
    pub(crate) fn filtered(&self, keep: impl Fn(&str) -> bool) -> Self {
        if self.iter().all(|(name, _)| keep(name)) {
            return self.clone();
        }
        if let LabelStorage::Stored(key, _) = &self.0
            && key.tags().all(|(name, _)| keep(name))
        {
            return Self(LabelStorage::Stored(key.clone(), MetricPresence::Dropped));
        }
        Self(LabelStorage::Built(match &self.0 {
            LabelStorage::Stored(..) => {
                let remaining = self.iter().filter(|(name, _)| keep(name));
                remaining.map(|(name, value)| (name.into(), value.into())).collect()
            }
            LabelStorage::Built(pairs) => {
                pairs.iter().filter(|(name, _)| keep(name)).cloned().collect()
            }
        }))
    }

    /// Returns the labels without the metric's name, type and unit.
    pub fn without_metric(&self) -> Self {
        self.filtered(is_kept_without_metric)
    }

    /// Returns only the named labels.
    pub(crate) fn only(&self, names: &[String]) -> Self {
        self.filtered(|label| names.iter().any(|name| name == label))
    }

    /// Returns the labels without the named labels and without the metric's name, type and unit.
    pub(crate) fn without(&self, names: &[String]) -> Self {
        self.filtered(|label| {
            is_kept_without_metric(label) && !names.iter().any(|name| name == label)
        })
    }

    /// Formats labels as in Prometheus' messages, with the metric's name in the braces.
    pub(crate) fn in_braces(&self) -> String {
        let all: Vec<_> = self.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        format!("{{{}}}", all.join(", "))
    }

    /// Sets a label; an empty value removes it.
    pub fn with(&self, name: &str, value: &str) -> Self {
        if self.get(name) == value {
            return self.clone();
        }
        let pair = |(name, value): (&str, &str)| (name.into(), value.into());
        let mut pairs = match &self.0 {
            LabelStorage::Stored(..) => self.iter().map(pair).collect(),
            LabelStorage::Built(pairs) => pairs.to_vec(),
        };
        pairs.push(pair((name, value)));
        Self::new(pairs)
    }
}

/// Returns true when a label applies to values calculated from a metric.
pub(crate) fn is_kept_without_metric(name: &str) -> bool {
    // Most names are decided by their first byte.
    !name.starts_with('_') || !METRIC_LABELS.contains(&name)
}

/// Returns the tags of a key, with the metric's name if it is kept.
fn with_metric(key: &SeriesKey, metric: MetricPresence) -> impl Iterator<Item = (&str, &str)> {
    let mut metric = (metric == MetricPresence::Kept).then(|| (METRIC_TAG, key.metric()));
    let mut tags = key.tags().peekable();
    std::iter::from_fn(move || {
        if metric.is_some() && tags.peek().is_none_or(|(name, _)| *name > METRIC_TAG) {
            return metric.take();
        }
        tags.next()
    })
}

/// Returns true when the metric's name precedes all tags, so that the key's bytes are in label
/// order.
fn begins_with_metric(key: &SeriesKey) -> bool {
    match key.tag_bytes().first() {
        Some(b'_') => key.tags().next().is_none_or(|(name, _)| name > METRIC_TAG),
        first => first.is_none_or(|first| *first > b'_'),
    }
}

impl Default for Labels {
    fn default() -> Self {
        Self(LabelStorage::Built(Arc::default()))
    }
}

impl Ord for Labels {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (
            LabelStorage::Stored(key, MetricPresence::Kept),
            LabelStorage::Stored(other, MetricPresence::Kept),
        ) = (&self.0, &other.0)
            && begins_with_metric(key)
            && begins_with_metric(other)
        {
            // Texts end with a byte that is lower than all others, so that byte order is label
            // order.
            return key.cmp(other);
        }
        if let (
            LabelStorage::Stored(key, MetricPresence::Dropped),
            LabelStorage::Stored(other, MetricPresence::Dropped),
        ) = (&self.0, &other.0)
        {
            return key.tag_bytes().cmp(other.tag_bytes());
        }
        self.iter().cmp(other.iter())
    }
}

impl PartialOrd for Labels {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Labels {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (LabelStorage::Stored(key, metric), LabelStorage::Stored(other, other_metric))
                if metric == other_metric =>
            {
                match metric {
                    MetricPresence::Kept => key == other,
                    MetricPresence::Dropped => key.tag_bytes() == other.tag_bytes(),
                }
            }
            _ => self.iter().eq(other.iter()),
        }
    }
}

impl Eq for Labels {}

impl Hash for Labels {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.iter().for_each(|pair| pair.hash(hasher));
    }
}

impl fmt::Display for Labels {
    /// Formats labels as Prometheus does: `metric{name="value", ...}`.
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
    use std::hash::BuildHasher;

    use foldhash::fast::FixedState;
    use proptest::prelude::*;

    use super::*;
    use crate::model::SeriesLimits;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        Labels::new(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    proptest! {
        #[test]
        fn stored_labels_equal_labels_with_the_same_pairs(
            metrics in prop::array::uniform2("[a-b]{1,2}"),
            tags in prop::array::uniform2(
                prop::collection::btree_map("(A|__a|_|a|ab|__unit__|z)", "[a-b]{1,2}", 0..4),
            ),
            dropped: [bool; 2],
        ) {
            let stored = [0, 1].map(|index| {
                let tags = tags[index].iter().map(|(name, value)| (name.as_str(), value.as_str()));
                let key = SeriesKey::new(&metrics[index], tags, &SeriesLimits::default()).unwrap();
                let labels = Labels::of_key(key);
                if dropped[index] { labels.filtered(|name| name != METRIC_TAG) } else { labels }
            });
            let pair = |(name, value): (&str, &str)| (name.into(), value.into());
            let built = stored.each_ref().map(|labels| Labels::new(labels.iter().map(pair).collect()));
            prop_assert!(stored.each_ref().map(Labels::iter).into_iter().all(Iterator::is_sorted));
            let hash = |labels: &Labels| FixedState::default().hash_one(labels);
            for (labels, built) in stored.iter().zip(&built) {
                prop_assert_eq!(labels, built);
                prop_assert_eq!(hash(labels), hash(built));
                prop_assert_eq!(labels.without_metric(), built.without_metric());
                prop_assert_eq!(labels.only(&["a".into()]), built.only(&["a".into()]));
                prop_assert_eq!(labels.with("ab", "c"), built.with("ab", "c"));
                prop_assert_eq!((labels.metric(), labels.get("a")), (built.metric(), built.get("a")));
            }
            for other in [&stored[1], &built[1]] {
                prop_assert_eq!(stored[0].cmp(other), built[0].cmp(&built[1]));
                prop_assert_eq!(stored[0] == *other, built[0] == built[1]);
            }
        }
    }

    #[test]
    fn labels_are_sorted_and_empty_labels_are_removed() {
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
