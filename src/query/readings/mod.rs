//! Readings of series as other stores exchange them: times, values and stale markers, for remote
//! read, federation and Graphite's protocol.
//!
//! The finest granularity that contains a time answers it. A cell of one or two samples contains
//! these samples, with their exact times. A cell of more samples contributes its first and its last
//! sample. The cell of a delta contributes its sum at the time of its last sample, because a delta
//! counts the events since the previous sample. No reading is invented: a slot without samples has
//! no reading. Must never know: the protocols.

mod reader;
mod shards;

use std::ops::Range;

pub use shards::{each_series, newest_readings, readings_of_question};

use crate::{
    model::{Histogram, Kind, UnixMillis},
    query::Labels,
};

/// The readings of a series.
#[derive(Debug, Clone)]
pub struct SeriesReadings {
    /// The labels of the series.
    pub labels: Labels,
    /// The kind of the values.
    pub kind: Kind,
    /// Times in Unix milliseconds, ascending, each with its value. A stale marker ends a series.
    pub readings: Vec<(i64, f64)>,
    /// The histograms of a series of histograms, which has no other readings: times in ascending
    /// order, each with its histogram.
    pub histograms: Vec<(i64, Histogram)>,
}

/// The readings that a peer requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadingsRequest {
    /// The time range, end exclusive.
    pub range: Range<UnixMillis>,
    /// True when only the labels of the series are needed.
    pub labels_only: bool,
}
