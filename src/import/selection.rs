//! The selection of a file's samples that are imported, and their kinds.
//!
//! Must never know: formats, the command's flags.

use std::ops::Range;

use super::NO_TIME;
use crate::model::{Kind, SeriesKey, UnixMillis};

/// A selection of a file's samples. Everything is selected by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Kind of all series, instead of what names and types say.
    pub kind: Option<Kind>,
    /// Name of the metric; any when `None`.
    pub metric: Option<String>,
    /// Tags that a series must have.
    pub tags: Vec<(String, String)>,
    /// Times of the samples, end exclusive.
    pub times: Range<UnixMillis>,
}

impl Default for Selection {
    fn default() -> Self {
        let times = UnixMillis(i64::MIN)..UnixMillis(i64::MAX);
        Self { kind: None, metric: None, tags: Vec::new(), times }
    }
}

impl Selection {
    /// Whether samples of a series are selected.
    pub fn has_series(&self, key: &SeriesKey) -> bool {
        let is_tag = |(name, value): &(String, String)| {
            key.tags().any(|tag| tag == (name.as_str(), value.as_str()))
        };
        self.metric.as_ref().is_none_or(|metric| metric == key.metric())
            && self.tags.iter().all(is_tag)
    }

    /// Whether samples of a time are selected. A sample without a time is: it is refused later,
    /// with the reason.
    pub fn has_time(&self, at: UnixMillis) -> bool {
        at == NO_TIME || self.times.contains(&at)
    }

    /// The selection in words that never change, none for what is selected by default.
    pub fn words(&self) -> Vec<String> {
        let all = Self::default();
        let metric = self.metric.iter().map(|metric| format!("only metric {metric}"));
        let tags = self.tags.iter().map(|(name, value)| format!("only {name}={value}"));
        let mut words: Vec<_> = metric.chain(tags).collect();
        if self.times.start != all.times.start {
            words.push(format!("from {}", self.times.start.0));
        }
        if self.times.end != all.times.end {
            words.push(format!("until {}", self.times.end.0));
        }
        words
    }
}
