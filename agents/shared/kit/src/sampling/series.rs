//! A series that a collector describes once and reads many times: its readings contain neither
//! names nor tags.
//!
//! Must never know: how refs are assigned; a series only remembers its assignment.

use std::sync::atomic::{AtomicU64, Ordering};

use granary_protocol::{Kind, SeriesDefinition};

/// A series with its description.
///
/// Agents keep hundreds of thousands of series, so all names share one text.
#[derive(Debug)]
pub struct Series {
    /// Metric, unit, then name and value of each tag, sorted by name, without separators.
    text: Box<str>,
    /// The end of each name in the text.
    ends: Box<[u32]>,
    kind: Kind,
    /// The owner and its assignment, see [`Assignment`].
    packed_assignment: AtomicU64,
}

/// The estimated bytes per series for the allocator and the counters of an `Arc`.
const OVERHEAD_BYTES: usize = 64;

/// The treatment of a series' readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Assignment {
    /// Readings are sent under this ref.
    Ref(u32),
    /// A rule drops the readings.
    Dropped,
}

const DROPPED: u32 = u32::MAX;

impl Series {
    /// Creates a series; the order of the tags is irrelevant.
    pub fn new(
        metric: impl Into<String>,
        mut tags: Vec<(String, String)>,
        kind: Kind,
        unit: impl Into<String>,
    ) -> Self {
        tags.sort_unstable();
        let (metric, unit) = (metric.into(), unit.into());
        let pairs = tags.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        let (mut text, mut ends) = (String::new(), Vec::with_capacity(2 + 2 * tags.len()));
        for part in [metric.as_str(), unit.as_str()].into_iter().chain(pairs) {
            text.push_str(part);
            ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        }
        Self { text: text.into(), ends: ends.into(), kind, packed_assignment: AtomicU64::new(0) }
    }

    /// Returns the kind of the values.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the name of the metric.
    pub fn metric(&self) -> &str {
        self.text_part(0)
    }

    /// Returns the unit of the values, or an empty text.
    pub fn unit(&self) -> &str {
        self.text_part(1)
    }

    /// Returns the tags, sorted by name.
    pub fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        (2..self.ends.len()).step_by(2).map(|at| (self.text_part(at), self.text_part(at + 1)))
    }

    /// Returns the memory of the series in bytes, including the allocation.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.text.len() + size_of_val(&*self.ends) + OVERHEAD_BYTES
    }

    fn text_part(&self, at: usize) -> &str {
        let end = |at: usize| self.ends.get(at).map_or(0, |end| *end as usize);
        let start = at.checked_sub(1).map_or(0, end);
        self.text.get(start..end(at)).unwrap_or_default()
    }

    /// Returns the series with the common tags added; existing tags take precedence.
    pub(crate) fn with(&self, common: &[(String, String)]) -> Self {
        let SeriesDefinition { metric, tags, kind, unit, .. } = self.define(common);
        Self::new(metric, tags, kind, unit)
    }

    /// Returns the definition with the common tags added; existing tags take precedence.
    pub(crate) fn define(&self, common: &[(String, String)]) -> SeriesDefinition {
        let pairs = self.tags().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut tags: Vec<_> = pairs.collect();
        for (key, value) in common {
            if !tags.iter().any(|(known, _)| known == key) {
                tags.push((key.clone(), value.clone()));
            }
        }
        tags.sort_unstable();
        SeriesDefinition {
            reference: 0,
            metric: self.metric().to_owned(),
            tags,
            kind: self.kind,
            unit: self.unit().to_owned(),
        }
    }

    /// Returns the assignment of `owner`, which is not 0.
    pub(crate) fn assignment(&self, owner: u32) -> Option<Assignment> {
        let packed_assignment = self.packed_assignment.load(Ordering::Relaxed);
        (packed_assignment >> 32 == u64::from(owner)).then_some(match packed_assignment as u32 {
            DROPPED => Assignment::Dropped,
            reference => Assignment::Ref(reference),
        })
    }

    /// Remembers the assignment of `owner`.
    pub(crate) fn set_assignment(&self, owner: u32, assignment: Assignment) {
        let assignment = match assignment {
            Assignment::Ref(reference) => reference,
            Assignment::Dropped => DROPPED,
        };
        self.packed_assignment
            .store(u64::from(owner) << 32 | u64::from(assignment), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_defined_as_it_was_described() {
        let tags = [("b", "x\0y"), ("a", ""), ("c", "ü")];
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let series = Series::new("m", owned(&tags), Kind::Counter, "bytes");
        assert_eq!((series.metric(), series.unit(), series.kind()), ("m", "bytes", Kind::Counter));
        assert_eq!(series.tags().collect::<Vec<_>>(), [("a", ""), ("b", "x\0y"), ("c", "ü")]);
        let defined = series.define(&owned(&[("b", "other"), ("aa", "1")]));
        assert_eq!(defined.tags, owned(&[("a", ""), ("aa", "1"), ("b", "x\0y"), ("c", "ü")]));
        assert_eq!((&*defined.metric, &*defined.unit), ("m", "bytes"));
        assert_eq!(Series::new("", Vec::new(), Kind::Gauge, "").metric(), "");
    }
}
