//! The keys of rule files: those of Prometheus and of Granary, and no others.
//!
//! Must never know: what the values mean.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_saphyr::{Location, Spanned};

/// A value with its line, counted from 1, if the value is from a file.
#[derive(Debug)]
pub(super) struct Lined<T> {
    pub(super) line: Option<u64>,
    pub(super) value: T,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lined<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::deserialize(from)?;
        Ok(Self { line: line_of(referenced), value })
    }
}

/// Returns the line of a location, if it is known.
pub(super) fn line_of(location: Location) -> Option<u64> {
    Some(location.line()).filter(|line| *line > 0)
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    #[serde(default)]
    pub(super) groups: Vec<Lined<RawGroup>>,
    #[serde(default)]
    pub(super) slos: Vec<Lined<RawSlo>>,
}

/// A service level objective: a share of good events, in one of three forms.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSlo {
    pub(super) name: String,
    /// Percent.
    pub(super) target: f64,
    pub(super) window: Option<String>,
    pub(super) good: Option<String>,
    pub(super) bad: Option<String>,
    pub(super) total: Option<String>,
    pub(super) histogram: Option<String>,
    pub(super) under: Option<f64>,
    pub(super) interval: Option<String>,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawGroup {
    pub(super) name: String,
    pub(super) interval: Option<String>,
    pub(super) query_offset: Option<String>,
    #[serde(default)]
    pub(super) limit: usize,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) rules: Vec<Lined<RawRule>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule {
    pub(super) record: Option<String>,
    pub(super) alert: Option<String>,
    pub(super) expr: String,
    #[serde(rename = "for")]
    pub(super) for_long: Option<String>,
    pub(super) keep_firing_for: Option<String>,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) no_data: Option<String>,
    pub(super) no_data_for: Option<String>,
    pub(super) recover: Option<String>,
    pub(super) severity: Option<Levels>,
}

/// Levels and their thresholds, in the order of the file.
#[derive(Debug)]
pub(super) struct Levels(pub(super) Vec<(String, String)>);

impl<'de> Deserialize<'de> for Levels {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct LevelsVisitor;
        impl<'de> Visitor<'de> for LevelsVisitor {
            type Value = Levels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("levels with their thresholds, such as warning: \"> 80\"")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Levels, M::Error> {
                let mut levels = Vec::new();
                while let Some(level) = map.next_entry()? {
                    levels.push(level);
                }
                Ok(Levels(levels))
            }
        }
        from.deserialize_map(LevelsVisitor)
    }
}
