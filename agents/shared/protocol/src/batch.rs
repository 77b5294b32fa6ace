//! The owned form of a batch, for senders.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The kind of a series: how its values are interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Gauge: a level at a time.
    #[default]
    Gauge,
    /// Counter: a total that only grows, and restarts at zero with its source.
    Counter,
    /// Delta: the number of events since the previous sample; values are summed up.
    Delta,
    /// Histogram: the distribution of all observations since a start, in buckets; restarts empty
    /// with its source.
    Histogram,
    /// Histogram of a level: a distribution at a time, whose counts can decrease.
    GaugeHistogram,
    /// Histogram of the observations since the previous sample; buckets are summed up.
    DeltaHistogram,
}

impl Kind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; 6] = [
        Self::Gauge,
        Self::Counter,
        Self::Delta,
        Self::Histogram,
        Self::GaugeHistogram,
        Self::DeltaHistogram,
    ];

    /// The kinds of numbers, in the order of their codes.
    pub const OF_NUMBERS: [Self; 3] = [Self::Gauge, Self::Counter, Self::Delta];

    /// Returns true when each sample is a histogram.
    pub fn is_histogram(self) -> bool {
        self != self.of_counts()
    }

    /// Returns the kind of a histogram's count of observations; a kind of numbers stays as it is.
    #[inline]
    pub fn of_counts(self) -> Self {
        match self {
            Self::Gauge | Self::GaugeHistogram => Self::Gauge,
            Self::Counter | Self::Histogram => Self::Counter,
            Self::Delta | Self::DeltaHistogram => Self::Delta,
        }
    }

    /// Returns the kind of histograms whose counts have this kind.
    pub fn of_histograms(self) -> Self {
        match self.of_counts() {
            Self::Gauge => Self::GaugeHistogram,
            Self::Counter => Self::Histogram,
            Self::Delta | Self::Histogram | Self::GaugeHistogram | Self::DeltaHistogram => {
                Self::DeltaHistogram
            }
        }
    }

    /// Returns the word in responses and batches.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Delta => "delta",
            Self::Histogram => "histogram",
            Self::GaugeHistogram => "gaugehistogram",
            Self::DeltaHistogram => "deltahistogram",
        }
    }

    /// Returns the kind with this word, also of histograms.
    pub(crate) fn from_word(word: &str) -> Result<Self, UnknownKind> {
        let kind = Self::ALL.into_iter().find(|kind| kind.as_str() == word);
        kind.ok_or_else(|| UnknownKind(word.to_owned()))
    }

    /// Returns the code on disk.
    pub fn code(self) -> u8 {
        match self {
            Self::Gauge => 0,
            Self::Counter => 1,
            Self::Delta => 2,
            Self::Histogram => 3,
            Self::GaugeHistogram => 4,
            Self::DeltaHistogram => 5,
        }
    }

    /// Returns the kind with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error of an unknown kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind {0:?}; use gauge, counter or delta")]
pub struct UnknownKind(pub String);

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(word: &str) -> Result<Self, UnknownKind> {
        Self::OF_NUMBERS
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .ok_or_else(|| UnknownKind(word.to_owned()))
    }
}

/// The definition of a ref.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeriesDefinition {
    /// The number of the series in the sender's samples, unique within `(agent, epoch)`.
    pub reference: u32,
    /// The name of the metric.
    pub metric: String,
    /// The tags, in any order.
    pub tags: Vec<(String, String)>,
    /// The kind of the values.
    pub kind: Kind,
    /// The unit of the values, such as `bytes` or `seconds`, or an empty text.
    pub unit: String,
}

/// A batch: samples of one sender that are accepted, or recognized as duplicates, as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// The name of the sender, unique in the fleet.
    pub agent: String,
    /// The start time of the sender's spool, in Unix milliseconds; a new spool has a new epoch.
    pub epoch: i64,
    /// The number of the batch within the epoch, in ascending order, or 0 for a batch without a
    /// number, which counts again when it is sent again.
    pub seq: u64,
    /// The sender's time of sending, in Unix milliseconds, or 0.
    pub sent: i64,
    /// The definitions of new refs.
    pub series: Vec<SeriesDefinition>,
    /// The ref of each sample.
    pub refs: Vec<u32>,
    /// The times in Unix milliseconds: one per sample, or one for all.
    pub times: Vec<i64>,
    /// The value of each sample.
    pub values: Vec<f64>,
    /// The start times of counters, in Unix milliseconds: one per sample, one for all, or none.
    pub starts: Vec<i64>,
    /// The bytes of the samples that are histograms, see [`crate::push_histogram`]. Their values
    /// are the numbers of observations.
    pub histograms: Vec<u8>,
}
