//! Pages of `GET /api/v1/export`, with exact numbers.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::value::RawValue;

use crate::model::{Histogram, JsonHistogram, Kind};

/// A page; see the daemon's `ExportPage`.
#[derive(Debug, Deserialize)]
pub(super) struct Page {
    pub(super) total: u64,
    pub(super) done: u64,
    pub(super) after: Option<String>,
    pub(super) upto: Option<String>,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) resolution: String,
    pub(super) width_ms: i64,
    pub(super) timestamp: String,
    pub(super) tags: BTreeSet<String>,
    #[serde(default)]
    pub(super) has_histograms: bool,
    pub(super) series: Vec<Series>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Series {
    pub(super) metric: String,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) kind: Kind,
    pub(super) unit: String,
    pub(super) documents: Vec<Document>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Document {
    pub(super) start: i64,
    pub(super) slots: u32,
    pub(super) cells: Vec<Cell>,
    #[serde(default)]
    histograms: Vec<Histograms>,
}

impl Document {
    /// Returns the histograms of a cell, if it has any.
    pub(super) fn histograms_of(&self, cell: &Cell) -> Option<&Histograms> {
        let found = self.histograms.binary_search_by_key(&cell.0, |histograms| histograms.0);
        found.ok().and_then(|index| self.histograms.get(index))
    }
}

/// The histograms of a cell: `[slot, first_at, last, first, total]`; the first one and the total
/// are `null` when they are the last one.
#[derive(Debug, Deserialize)]
pub(super) struct Histograms(u32, i64, JsonHistogram, Option<JsonHistogram>, Option<JsonHistogram>);

impl Histograms {
    pub(super) fn first_at(&self) -> i64 {
        self.1
    }

    pub(super) fn last(&self) -> &Histogram {
        &self.2.0
    }

    pub(super) fn first(&self) -> &Histogram {
        self.3.as_ref().map_or(&self.2.0, |first| &first.0)
    }

    pub(super) fn total(&self) -> &Histogram {
        self.4.as_ref().map_or(&self.2.0, |total| &total.0)
    }
}

/// A cell: `[slot, n, last_at, sum, min, max, first, last]`.
#[derive(Debug, Deserialize)]
pub(super) struct Cell(
    pub(super) u32,
    pub(super) u32,
    pub(super) i64,
    Option<ExactNumber>,
    Option<ExactNumber>,
    Option<ExactNumber>,
    Option<ExactNumber>,
    Option<ExactNumber>,
);

impl Cell {
    /// Returns the cell's values other than `n`.
    pub(super) fn numbers(&self) -> [(&'static str, Option<f64>); 5] {
        let number = |exact: &Option<ExactNumber>| exact.as_ref().map(|exact| exact.0);
        [
            ("sum", number(&self.3)),
            ("min", number(&self.4)),
            ("max", number(&self.5)),
            ("first", number(&self.6)),
            ("last", number(&self.7)),
        ]
    }

    pub(super) fn sum(&self) -> f64 {
        self.3.as_ref().map_or(0.0, |exact| exact.0)
    }

    pub(super) fn last(&self) -> Option<f64> {
        self.7.as_ref().map(|exact| exact.0)
    }
}

/// A number that is parsed exactly: `serde_json` may miss the last bit. NaN and infinity are
/// strings.
#[derive(Debug)]
struct ExactNumber(f64);

impl<'de> Deserialize<'de> for ExactNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?;
        text.get().trim_matches('"').parse().map(Self).map_err(D::Error::custom)
    }
}
