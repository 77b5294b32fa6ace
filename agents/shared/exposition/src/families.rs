//! What the comments between samples say of metric families: types and units.
//!
//! Must never know: samples and labels.

use std::collections::HashMap;

use granary_protocol::Kind;

use crate::names::is_metric_name;

/// Metric families whose types are remembered; with more, the rest goes by name.
const FAMILIES_MAX: usize = 100_000;
/// What a family's name may be followed by in the name of a sample.
const SUFFIXES: [&str; 8] =
    ["_total", "_bucket", "_count", "_sum", "_created", "_gcount", "_gsum", "_info"];

/// What TYPE and UNIT lines said of a family.
#[derive(Debug, Clone, Default)]
pub struct Family {
    /// Its type.
    pub kind: Type,
    /// Its unit; empty when there is none.
    pub unit: Box<str>,
}

/// What a family's type says of its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Type {
    /// Counts up from a start.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Histograms, summaries and what is not said: the suffix of the name tells.
    #[default]
    ByName,
}

impl Family {
    /// The kind of one of its metrics.
    pub fn kind_of(&self, metric: &str) -> Kind {
        match self.kind {
            Type::Counter if metric.ends_with("_created") => Kind::Gauge,
            Type::Counter => Kind::Counter,
            Type::Gauge => Kind::Gauge,
            Type::ByName => kind_of_name(metric),
        }
    }

    /// The unit of one of its metrics: numbers of observations have none.
    pub fn unit_of(&self, metric: &str) -> &str {
        let is_number = ["_bucket", "_count"].iter().any(|suffix| metric.ends_with(suffix));
        if self.kind == Type::ByName && is_number { "" } else { &self.unit }
    }
}

/// By name.
#[derive(Debug, Default)]
pub struct Families {
    by_name: HashMap<Box<str>, Family>,
    bytes: usize,
}

/// Bytes of a family beside its name and unit.
const FAMILY_BYTES: usize = 128;

impl Families {
    /// Takes note of a comment, the text behind its `#`.
    ///
    /// # Errors
    /// When it begins as one that tells of a family, and does not name it.
    pub fn note(&mut self, comment: &str) -> Result<(), &'static str> {
        let mut words = comment.split_ascii_whitespace();
        let Some(what @ ("TYPE" | "UNIT" | "HELP")) = words.next() else { return Ok(()) };
        let name = words.next().unwrap_or_default();
        if !name.starts_with('"') && !is_metric_name(name) {
            return Err("a comment tells of a family without its name");
        }
        let word = words.next().unwrap_or_default();
        match (what, word) {
            ("TYPE", "counter") => self.set_type(name, Type::Counter),
            ("TYPE", "gauge" | "gaugehistogram" | "info" | "stateset") => {
                self.set_type(name, Type::Gauge);
            }
            ("TYPE", _) => self.set_type(name, Type::ByName),
            ("UNIT", _) => self.set_unit(name, word),
            _ => {}
        }
        Ok(())
    }

    /// Says what type a family has.
    pub fn set_type(&mut self, name: &str, kind: Type) {
        if let Some(family) = self.entry(name) {
            family.kind = kind;
        }
    }

    /// Says what unit a family has.
    pub fn set_unit(&mut self, name: &str, unit: &str) {
        if let Some(family) = self.entry(name) {
            let more = unit.len().saturating_sub(family.unit.len());
            family.unit = unit.into();
            self.bytes += more;
        }
    }

    /// The memory that they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What is known of a metric's family.
    pub fn find(&self, metric: &str) -> Option<&Family> {
        self.by_name.get(metric).or_else(|| {
            let stem = SUFFIXES.iter().find_map(|suffix| metric.strip_suffix(suffix))?;
            self.by_name.get(stem)
        })
    }

    fn entry(&mut self, name: &str) -> Option<&mut Family> {
        let name = name.trim_matches('"');
        if !self.by_name.contains_key(name) {
            if self.by_name.len() >= FAMILIES_MAX {
                return None;
            }
            self.bytes += name.len() + FAMILY_BYTES;
        }
        Some(self.by_name.entry(name.into()).or_default())
    }
}

/// The kind of a metric whose sender does not say it, from the suffixes that Prometheus and
/// OpenMetrics reserve for counters.
pub fn kind_of_name(metric: &str) -> Kind {
    let counters = ["_total", "_count", "_sum", "_bucket"];
    if counters.iter().any(|suffix| metric.ends_with(suffix)) { Kind::Counter } else { Kind::Gauge }
}
