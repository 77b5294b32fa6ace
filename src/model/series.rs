//! Series: one metric and one set of tags.
//!
//! A key is stored as its canonical bytes: the metric, then each tag's name and value in order of
//! the names, each ended by a NUL byte. Equal series have equal bytes, in whatever order the sender
//! lists the tags.

use std::{fmt, sync::Arc};

use super::Kind;

/// The number of a series in this store, counting up from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesId(pub u32);

/// The definition of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesInfo {
    /// The metric and the tags.
    pub key: SeriesKey,
    /// The kind of the values.
    pub kind: Kind,
    /// The unit of the values; empty if there is none.
    pub unit: Arc<str>,
    /// The sender that registered the series; empty for senders without a name.
    pub sender: Arc<str>,
}

/// The limits of a key's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesLimits {
    /// The maximum number of tags of a series.
    pub tags_max: usize,
    /// The maximum length of a metric's or tag's name, in bytes.
    pub name_bytes_max: usize,
    /// The maximum length of a tag's value, in bytes.
    pub value_bytes_max: usize,
}

impl Default for SeriesLimits {
    fn default() -> Self {
        Self { tags_max: 32, name_bytes_max: 256, value_bytes_max: 1024 }
    }
}

impl SeriesLimits {
    /// Returns an upper bound for the bytes of a series' parts in any sender's framing; decoders
    /// check it before they write the parts for each of many samples.
    pub fn series_bytes_max(&self) -> usize {
        const FRAME_BYTES: usize = 24;
        let pair = self.name_bytes_max.saturating_add(self.value_bytes_max);
        let pairs = self.tags_max.saturating_add(1);
        pair.saturating_add(FRAME_BYTES).saturating_mul(pairs)
    }
}

/// The reason why a key is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeriesKeyError {
    /// A metric or tag has no name.
    #[error("a {0} name is empty")]
    EmptyName(&'static str),
    /// A name or value is longer than the limit.
    #[error("{what} of {length} bytes is longer than {limit}; shorten it")]
    TooLong {
        /// The part of the key.
        what: &'static str,
        /// The length in bytes.
        length: usize,
        /// The maximum length in bytes.
        limit: usize,
    },
    /// More tags than the limit.
    #[error("{count} tags exceed the limit of {limit}; send fewer")]
    TooManyTags {
        /// The number of tags.
        count: usize,
        /// The maximum number of tags.
        limit: usize,
    },
    /// A tag is named twice.
    #[error("tag {0:?} is given twice")]
    DuplicateTag(String),
    /// A text has a control character: keys use NUL as a separator, and terminals and line formats
    /// interpret others.
    #[error("{what} {text:?} contains a control character; remove it")]
    Control {
        /// The part of the key.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// A tag has the name under which queries address the metric.
    #[error("a tag is named {METRIC_TAG:?}, which is the metric's name in queries; rename the tag")]
    MetricTag,
}

/// The name under which queries address the metric, as in Prometheus; no tag may have it.
pub const METRIC_TAG: &str = "__name__";

/// One metric and one tag set, as canonical bytes. Clones are cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesKey(Arc<str>);

impl SeriesKey {
    /// Builds the key. Tags with an empty value are left out: they mean "no such tag". Names and
    /// values may be any UTF-8 without control characters.
    pub fn new<'a>(
        metric: &str,
        tags: impl IntoIterator<Item = (&'a str, &'a str)>,
        limits: &SeriesLimits,
    ) -> Result<Self, SeriesKeyError> {
        let mut tags: Vec<_> = tags.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        tags.sort_unstable();
        check_name("metric", metric, limits)?;
        if tags.len() > limits.tags_max {
            let count = tags.len();
            return Err(SeriesKeyError::TooManyTags { count, limit: limits.tags_max });
        }
        let mut text = String::with_capacity(64);
        text.push_str(metric);
        text.push('\0');
        let mut before = "";
        for (name, value) in tags {
            check_name("tag", name, limits)?;
            check_length("tag value", value, limits.value_bytes_max)?;
            check_plain("tag value", value)?;
            if name == METRIC_TAG {
                return Err(SeriesKeyError::MetricTag);
            }
            if name == before {
                return Err(SeriesKeyError::DuplicateTag(name.to_owned()));
            }
            before = name;
            for part in [name, value] {
                text.push_str(part);
                text.push('\0');
            }
        }
        Ok(Self(text.into()))
    }

    /// Returns the canonical bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Returns the key of stored bytes; `None` if they are not canonical.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        // The metric and the pairs, each part ended by a NUL byte.
        let parts = text.bytes().filter(|byte| *byte == 0).count();
        (text.ends_with('\0') && !parts.is_multiple_of(2)).then(|| Self(text.into()))
    }

    /// Returns the metric.
    pub fn metric(&self) -> &str {
        self.parts().next().unwrap_or_default()
    }

    /// Iterates over the tags' names and values, in order of the names.
    pub fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut parts = self.parts().skip(1);
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// Returns the number of tags.
    pub fn tags_count(&self) -> usize {
        let ends = self.0.bytes().filter(|byte| *byte == 0).count();
        ends / 2
    }

    /// Returns the value of a tag.
    pub fn tag(&self, name: &str) -> Option<&str> {
        self.tags().find(|(tag, _)| *tag == name).map(|(_, value)| value)
    }

    /// Returns the canonical bytes after the metric.
    pub fn tag_bytes(&self) -> &[u8] {
        let bytes = self.as_bytes();
        let end = bytes.iter().position(|byte| *byte == 0);
        end.and_then(|end| bytes.get(end + 1..)).unwrap_or_default()
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            // Parts are short: a plain loop is faster than starting a search.
            let end = rest.bytes().position(|byte| byte == 0)?;
            let part = rest.get(..end)?;
            rest = rest.get(end + 1..)?;
            Some(part)
        })
    }
}

impl fmt::Display for SeriesKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.metric())?;
        let mut separator = '{';
        for (name, value) in self.tags() {
            write!(f, "{separator}{name}={value:?}")?;
            separator = ',';
        }
        f.write_str(if separator == ',' { "}" } else { "" })
    }
}

impl fmt::Debug for SeriesKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn check_plain(what: &'static str, text: &str) -> Result<(), SeriesKeyError> {
    // ASCII is checked byte by byte, and most texts are ASCII.
    let has_control = if text.is_ascii() {
        text.bytes().any(|byte| byte.is_ascii_control())
    } else {
        text.contains(char::is_control)
    };
    if has_control {
        return Err(SeriesKeyError::Control { what, text: text.to_owned() });
    }
    Ok(())
}

fn check_name(what: &'static str, name: &str, limits: &SeriesLimits) -> Result<(), SeriesKeyError> {
    if name.is_empty() {
        return Err(SeriesKeyError::EmptyName(what));
    }
    check_length(what, name, limits.name_bytes_max)?;
    check_plain(if what == "tag" { "tag name" } else { "metric name" }, name)
}

fn check_length(what: &'static str, text: &str, limit: usize) -> Result<(), SeriesKeyError> {
    if text.len() > limit {
        return Err(SeriesKeyError::TooLong { what, length: text.len(), limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(metric: &str, tags: &[(&str, &str)]) -> Result<SeriesKey, SeriesKeyError> {
        SeriesKey::new(metric, tags.iter().copied(), &SeriesLimits::default())
    }

    #[test]
    fn the_order_of_tags_does_not_matter() {
        let a = key("cpu", &[("host", "a"), ("core", "0")]).unwrap();
        assert_eq!(a, key("cpu", &[("core", "0"), ("host", "a"), ("zone", "")]).unwrap());
        assert_eq!(a.to_string(), r#"cpu{core="0",host="a"}"#);
        assert_eq!(a.tag("host"), Some("a"));
    }

    #[test]
    fn bad_keys_are_refused_with_the_reason() {
        assert_eq!(key("", &[]), Err(SeriesKeyError::EmptyName("metric")));
        assert_eq!(key("m", &[("", "x")]), Err(SeriesKeyError::EmptyName("tag")));
        let control = |what, text: &str| Err(SeriesKeyError::Control { what, text: text.into() });
        assert_eq!(key("m\0", &[]), control("metric name", "m\0"));
        assert_eq!(key("bad name\n", &[]), control("metric name", "bad name\n"));
        assert_eq!(key("m", &[("\u{9b}31m", "x")]), control("tag name", "\u{9b}31m"));
        for value in ["\0", "a\nb", "\u{1b}[2J", "é\u{9b}31m", "\u{7f}"] {
            assert_eq!(key("m", &[("a", value)]), control("tag value", value));
        }
        assert_eq!(key("m", &[("__name__", "x")]), Err(SeriesKeyError::MetricTag));
        assert!(key("größe in m³", &[("Straße/Nr.", "a b\u{202e}")]).is_ok());
        let twice = key("m", &[("a", "1"), ("a", "2")]);
        assert_eq!(twice, Err(SeriesKeyError::DuplicateTag("a".into())));
        assert!(matches!(key(&"m".repeat(257), &[]), Err(SeriesKeyError::TooLong { .. })));
        let many: Vec<_> = (0..33).map(|i| (format!("t{i}"), "x".to_owned())).collect();
        let many: Vec<_> = many.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert!(matches!(key("m", &many), Err(SeriesKeyError::TooManyTags { .. })));
    }

    proptest! {
        #[test]
        fn a_key_equals_the_key_of_its_stored_bytes(
            metric in "[a-z/.]{1,9}",
            tags in prop::collection::btree_map("[a-z]{1,4}", "\\PC{1,4}", 0..4),
        ) {
            let pairs = tags.iter().map(|(k, v)| (k.as_str(), v.as_str()));
            let key = SeriesKey::new(&metric, pairs, &SeriesLimits::default()).unwrap();
            prop_assert_eq!(SeriesKey::from_bytes(key.as_bytes()), Some(key.clone()));
            prop_assert_eq!(key.metric(), metric);
            let back: Vec<_> = key.tags().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
            prop_assert_eq!(back, tags.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn a_key_of_random_bytes_has_these_bytes_or_is_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            if let Some(key) = SeriesKey::from_bytes(&bytes) {
                prop_assert_eq!(key.as_bytes(), &bytes[..]);
            }
        }
    }
}
