//! The types and units of metric families, from comments.
//!
//! Must never know: samples and labels.

use std::collections::HashMap;

use granary_protocol::Kind;

use crate::names::is_metric_name;

/// The maximum number of remembered families. The types of further families follow from their
/// names.
const FAMILIES_MAX: usize = 100_000;
/// The suffixes that a sample's name adds to its family's name.
const SUFFIXES: [&str; 8] =
    ["_total", "_bucket", "_count", "_sum", "_created", "_gcount", "_gsum", "_info"];

/// The metadata of a family, from TYPE and UNIT lines.
#[derive(Debug, Clone, Default)]
pub struct Family {
    /// The type of the family.
    pub kind: Type,
    /// The unit, or an empty text.
    pub unit: Box<str>,
}

/// The type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Type {
    /// Counter.
    Counter,
    /// Gauge.
    Gauge,
    /// Histogram, summary or unknown: the suffix of a name determines the kind.
    #[default]
    ByName,
}

impl Family {
    /// Returns the kind of a metric of this family.
    pub fn kind_of(&self, metric: &str) -> Kind {
        match self.kind {
            Type::Counter if metric.ends_with("_created") => Kind::Gauge,
            Type::Counter => Kind::Counter,
            Type::Gauge => Kind::Gauge,
            Type::ByName => kind_of_name(metric),
        }
    }

    /// Returns the unit of a metric of this family; counts of observations have none.
    pub fn unit_of(&self, metric: &str) -> &str {
        let is_count = ["_bucket", "_count"].iter().any(|suffix| metric.ends_with(suffix));
        if self.kind == Type::ByName && is_count { "" } else { &self.unit }
    }
}

/// The families by name.
#[derive(Debug, Default)]
pub struct Families {
    by_name: HashMap<Box<str>, Family>,
    bytes: usize,
    last_type: Type,
}

/// The memory of a family, without its name and unit.
const FAMILY_BYTES: usize = 128;

impl Families {
    /// Parses a comment, without its `#`.
    ///
    /// # Errors
    /// The comment is a TYPE or UNIT line without a name.
    pub fn note(&mut self, comment: &str) -> Result<(), &'static str> {
        let mut words = comment.split_ascii_whitespace();
        let Some(keyword @ ("TYPE" | "UNIT" | "HELP")) = words.next() else { return Ok(()) };
        let name = words.next().unwrap_or_default();
        if !name.starts_with('"') && !is_metric_name(name) {
            return Err("a comment has no valid name of a family");
        }
        let word = words.next().unwrap_or_default();
        match (keyword, word) {
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

    /// Sets the type of a family.
    pub fn set_type(&mut self, name: &str, kind: Type) {
        self.last_type = kind;
        if let Some(family) = self.entry(name) {
            family.kind = kind;
        }
    }

    /// Sets the unit of a family.
    pub fn set_unit(&mut self, name: &str, unit: &str) {
        if let Some(family) = self.entry(name) {
            let more = unit.len().saturating_sub(family.unit.len());
            family.unit = unit.into();
            self.bytes += more;
        }
    }

    /// Returns the type that was set last, which is usually the type of the following samples.
    pub fn last_type(&self) -> Type {
        self.last_type
    }

    /// Returns the memory of all families.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the family of a metric.
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

/// Returns the kind of a metric without a declared type, by the suffixes that Prometheus and
/// OpenMetrics reserve for counters.
pub fn kind_of_name(metric: &str) -> Kind {
    let counters = ["_total", "_count", "_sum", "_bucket"];
    if counters.iter().any(|suffix| metric.ends_with(suffix)) { Kind::Counter } else { Kind::Gauge }
}
