//! The types of metrics that senders report, and the resulting kinds of series.
//!
//! Must never know: samples, registered series.

use std::collections::HashMap;

use granary_exposition::{
    kind_of_name,
    wire::{Fields, WireFault},
};

use crate::model::{Kind, SeriesLimits};

/// The reported types of metrics, by family name. Version 1.0 of remote write sends them separately
/// from the samples, about once a minute.
#[derive(Debug, Default)]
pub struct Families(HashMap<Box<str>, Type>);

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
    /// Decodes `MetricMetadata`: type 1, family name 2. Skips names above the length limit. Returns
    /// true when the kind of the family's series changes.
    pub(super) fn learn(
        &mut self,
        message: &[u8],
        limits: &SeriesLimits,
    ) -> Result<bool, WireFault> {
        let (mut code, mut name) = (0, "");
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next_field()? {
            match field {
                1 => code = value.int(),
                2 => name = std::str::from_utf8(value.bytes()).unwrap_or_default(),
                _ => {}
            }
        }
        if let Some(found) = Type::from_code(code)
            && name.len() <= limits.name_bytes_max
            && (self.0.len() < FAMILIES_MAX || self.0.contains_key(name))
        {
            let before = self.kind(name);
            self.0.insert(name.into(), found);
            return Ok(self.kind(name) != before);
        }
        Ok(false)
    }

    /// Returns the kind of a metric's series, and whether it was declared.
    pub(super) fn kind(&self, metric: &str) -> (Kind, bool) {
        match self.0.get(metric) {
            Some(found) => (found.kind(metric), *found != Type::ByName),
            None => (kind_of_name(metric), false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_too_long_is_not_remembered() {
        let limits = SeriesLimits::default();
        let mut families = Families::default();
        for length in [limits.name_bytes_max, limits.name_bytes_max + 1] {
            let mut message = vec![0x08, 1, 0x12];
            message.extend([length as u8 | 0x80, (length >> 7) as u8]);
            message.extend(vec![b'n'; length]);
            families.learn(&message, &limits).unwrap();
        }
        let lengths: Vec<_> = families.0.keys().map(|name| name.len()).collect();
        assert_eq!(lengths, [limits.name_bytes_max]);
    }
}
