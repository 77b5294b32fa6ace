//! The types of metrics that senders report, and the resulting kinds of series.
//!
//! Must never know: samples, registered series.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use granary_exposition::{
    kind_of_name,
    wire::{Fields, WireFault},
};
use parking_lot::RwLock;

use crate::model::{Kind, SeriesLimits};

/// The reported types of metrics, by family name. Version 1.0 of remote write sends them separately
/// from the samples, about once a minute. All clones share the types.
#[derive(Debug, Default, Clone)]
pub struct Families {
    shared: Arc<SharedFamilies>,
    /// The changes that the holder of this clone knows.
    known_changes: u64,
}

#[derive(Debug, Default)]
struct SharedFamilies {
    types: RwLock<HashMap<Box<str>, Type>>,
    /// The number of types that changed the kinds of series.
    changes: AtomicU64,
}

/// The maximum number of families; beyond it, names determine the kinds.
const FAMILIES_MAX: usize = 100_000;

/// The type of a metric family, by its code in both versions (`MetricMetadata.MetricType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Counter,
    Gauge,
    /// Histograms and summaries: the suffix of the name determines the kind.
    ByName,
}

impl Type {
    pub(super) fn from_code(code: i64) -> Option<Self> {
        match code {
            1 => Some(Self::Counter),
            2 | 6 | 7 => Some(Self::Gauge),
            3..=5 => Some(Self::ByName),
            _ => None,
        }
    }

    pub(super) fn kind(self, metric: &str) -> Kind {
        match self {
            Self::Counter => Kind::Counter,
            Self::Gauge => Kind::Gauge,
            Self::ByName => kind_of_name(metric),
        }
    }
}

impl Families {
    /// Decodes `MetricMetadata`: type 1, family name 2. Skips names above the length limit.
    pub(super) fn remember_kind(
        &self,
        message: &[u8],
        limits: &SeriesLimits,
    ) -> Result<(), WireFault> {
        let (mut code, mut name) = (0, "");
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next_field()? {
            match field {
                1 => code = value.int(),
                2 => name = std::str::from_utf8(value.bytes()).unwrap_or_default(),
                _ => {}
            }
        }
        let Some(found) = Type::from_code(code).filter(|_| name.len() <= limits.name_bytes_max)
        else {
            return Ok(());
        };
        let mut types = self.shared.types.write();
        let before = types.get(name).copied();
        if before.is_some() || types.len() < FAMILIES_MAX {
            types.insert(name.into(), found);
            if kind_by(before, name) != kind_by(Some(found), name) {
                self.shared.changes.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Returns true once after each change of kinds.
    pub(crate) fn has_changed(&mut self) -> bool {
        let changes = self.shared.changes.load(Ordering::Relaxed);
        std::mem::replace(&mut self.known_changes, changes) != changes
    }

    /// Returns the kind of a metric's series, and whether it was declared.
    pub(super) fn kind(&self, metric: &str) -> (Kind, bool) {
        kind_by(self.shared.types.read().get(metric).copied(), metric)
    }
}

fn kind_by(found: Option<Type>, metric: &str) -> (Kind, bool) {
    match found {
        Some(found) => (found.kind(metric), found != Type::ByName),
        None => (kind_of_name(metric), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_too_long_is_not_remembered() {
        let limits = SeriesLimits::default();
        let families = Families::default();
        for length in [limits.name_bytes_max, limits.name_bytes_max + 1] {
            let mut message = vec![0x08, 1, 0x12];
            message.extend([length as u8 | 0x80, (length >> 7) as u8]);
            message.extend(vec![b'n'; length]);
            families.remember_kind(&message, &limits).unwrap();
        }
        let lengths: Vec<_> = families.shared.types.read().keys().map(|name| name.len()).collect();
        assert_eq!(lengths, [limits.name_bytes_max]);
    }
}
