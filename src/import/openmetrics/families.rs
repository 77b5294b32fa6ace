//! What the comments between samples say of metric families: types and units.
//!
//! Must never know: samples and labels.

use std::collections::HashMap;

/// Metric families whose types are remembered; with more, the rest goes by name.
const FAMILIES_MAX: usize = 100_000;
/// What a family's name may be followed by in the name of a sample.
const SUFFIXES: [&str; 8] =
    ["_total", "_bucket", "_count", "_sum", "_created", "_gcount", "_gsum", "_info"];

/// What TYPE and UNIT lines said of a family.
#[derive(Debug, Clone, Default)]
pub(super) struct Family {
    pub(super) kind: Type,
    pub(super) unit: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Type {
    Counter,
    Gauge,
    /// Histograms, summaries and what is not said: the suffix of the name tells.
    #[default]
    ByName,
}

/// By name.
#[derive(Debug, Default)]
pub(super) struct Families(HashMap<Box<str>, Family>);

impl Families {
    /// Takes note of a comment.
    pub(super) fn note(&mut self, comment: &str) {
        let mut words = comment.split_ascii_whitespace();
        let (Some(what @ ("TYPE" | "UNIT")), Some(name)) = (words.next(), words.next()) else {
            return;
        };
        let (name, word) = (name.trim_matches('"'), words.next().unwrap_or_default());
        if self.0.len() >= FAMILIES_MAX && !self.0.contains_key(name) {
            return;
        }
        let family = self.0.entry(name.into()).or_default();
        match (what, word) {
            ("TYPE", "counter") => family.kind = Type::Counter,
            ("TYPE", "gauge" | "gaugehistogram" | "info" | "stateset") => {
                family.kind = Type::Gauge;
            }
            ("TYPE", _) => family.kind = Type::ByName,
            _ => family.unit = word.into(),
        }
    }

    /// What is known of a metric's family.
    pub(super) fn find(&self, metric: &str) -> Option<&Family> {
        self.0.get(metric).or_else(|| {
            let stem = SUFFIXES.iter().find_map(|suffix| metric.strip_suffix(suffix))?;
            self.0.get(stem)
        })
    }
}
