//! A series that a collector describes once and reads many times: each reading of it costs neither
//! names nor tags.
//!
//! Must never know: which refs there are; it remembers the one that it was given.

use std::sync::atomic::{AtomicU64, Ordering};

use granary_protocol::{Kind, SeriesDefinition};

/// A series that is described once.
#[derive(Debug)]
pub struct Series {
    metric: String,
    tags: Vec<(String, String)>,
    kind: Kind,
    unit: String,
    /// Who placed it, and where; see [`Place`].
    placed: AtomicU64,
}

/// What becomes of a series' readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// They are sent under this ref.
    Ref(u32),
    /// A rule drops them.
    Dropped,
}

const DROPPED: u32 = u32::MAX;

impl Series {
    /// A series; the order of its tags does not matter.
    pub fn new(
        metric: impl Into<String>,
        mut tags: Vec<(String, String)>,
        kind: Kind,
        unit: impl Into<String>,
    ) -> Self {
        tags.sort_unstable();
        let (metric, unit) = (metric.into(), unit.into());
        Self { metric, tags, kind, unit, placed: AtomicU64::new(0) }
    }

    /// How its values are to be read.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What is measured.
    pub fn metric(&self) -> &str {
        &self.metric
    }

    /// Where it is measured, by name.
    pub fn tags(&self) -> &[(String, String)] {
        &self.tags
    }

    /// The same with the common tags where it lacks them.
    pub(crate) fn with(&self, common: &[(String, String)]) -> Self {
        let SeriesDefinition { metric, tags, kind, unit, .. } = self.define(common);
        Self::new(metric, tags, kind, unit)
    }

    /// Its definition, with the common tags where it lacks them.
    pub(crate) fn define(&self, common: &[(String, String)]) -> SeriesDefinition {
        let mut tags = self.tags.clone();
        for (key, value) in common {
            if !tags.iter().any(|(own, _)| own == key) {
                tags.push((key.clone(), value.clone()));
            }
        }
        tags.sort_unstable();
        SeriesDefinition {
            reference: 0,
            metric: self.metric.clone(),
            tags,
            kind: self.kind,
            unit: self.unit.clone(),
        }
    }

    /// Where `owner`, which is not 0, has placed it.
    pub(crate) fn place(&self, owner: u32) -> Option<Place> {
        let placed = self.placed.load(Ordering::Relaxed);
        (placed >> 32 == u64::from(owner)).then_some(match placed as u32 {
            DROPPED => Place::Dropped,
            reference => Place::Ref(reference),
        })
    }

    /// Remembers where `owner` has placed it.
    pub(crate) fn set_place(&self, owner: u32, place: Place) {
        let place = match place {
            Place::Ref(reference) => reference,
            Place::Dropped => DROPPED,
        };
        self.placed.store(u64::from(owner) << 32 | u64::from(place), Ordering::Relaxed);
    }
}
