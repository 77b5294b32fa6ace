//! The selection of a file's samples, and their kinds.
//!
//! Must never know: formats, the command's flags.

use std::ops::Range;

use super::NO_TIME;
use crate::model::{Kind, SeriesKey, UnixMillis};

/// A selection of a file's samples. Everything is selected by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The kind of all series, which overrides the file. Histograms get the kind of histograms
    /// whose counts have this kind.
    pub kind: Option<Kind>,
    /// The name of the metric; `None` selects all.
    pub metric: Option<String>,
    /// The tags that a series must have.
    pub tags: Vec<(String, String)>,
    /// The time range of the samples, end exclusive.
    pub times: Range<UnixMillis>,
}

impl Default for Selection {
    fn default() -> Self {
        let times = UnixMillis(i64::MIN)..UnixMillis(i64::MAX);
        Self { kind: None, metric: None, tags: Vec::new(), times }
    }
}

impl Selection {
    /// Returns true when samples of a series are selected.
    pub fn has_series(&self, key: &SeriesKey) -> bool {
        let is_tag = |(name, value): &(String, String)| {
            key.tags().any(|tag| tag == (name.as_str(), value.as_str()))
        };
        self.metric.as_ref().is_none_or(|metric| metric == key.metric())
            && self.tags.iter().all(is_tag)
    }

    /// Returns the kind of a series that has a kind in the file.
    pub fn kind_of(&self, in_file: Kind) -> Kind {
        match self.kind {
            Some(kind) if in_file.is_histogram() => kind.of_histograms(),
            Some(kind) => kind,
            None => in_file,
        }
    }

    /// Returns true when samples of a time are selected. A missing timestamp is selected, too, and
    /// refused later with the reason.
    pub fn has_time(&self, at: UnixMillis) -> bool {
        at == NO_TIME || self.times.contains(&at)
    }

    /// Returns the selection as words, which must stay the same in all releases; empty for the
    /// default.
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
