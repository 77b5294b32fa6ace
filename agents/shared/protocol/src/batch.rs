//! The owned form of a batch, as a sender builds it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// How the values of a series are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A level: each value stands for itself.
    #[default]
    Gauge,
    /// A running total that only grows and starts again at zero when its source restarts.
    Counter,
    /// A number of events since the sample before: values are added up.
    Delta,
}

impl Kind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; 3] = [Self::Gauge, Self::Counter, Self::Delta];

    /// The word used in batches and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Delta => "delta",
        }
    }

    /// The code used on disk.
    pub fn code(self) -> u8 {
        match self {
            Self::Gauge => 0,
            Self::Counter => 1,
            Self::Delta => 2,
        }
    }

    /// The kind with this code, if there is one.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind {0:?}; use gauge, counter or delta")]
pub struct UnknownKind(pub String);

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(word: &str) -> Result<Self, UnknownKind> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .ok_or_else(|| UnknownKind(word.to_owned()))
    }
}

/// What a ref stands for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeriesDefinition {
    /// The number that the sender's samples use, unique within `(agent, epoch)`.
    pub reference: u32,
    /// What is measured.
    pub metric: String,
    /// Where it is measured; order does not matter.
    pub tags: Vec<(String, String)>,
    /// How values are to be read.
    pub kind: Kind,
    /// Unit of the values, such as `bytes` or `seconds`; empty when there is none.
    pub unit: String,
}

/// Samples of one sender that are accepted, or recognised as sent before, in one piece.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// Name of the sender, unique in the fleet.
    pub agent: String,
    /// When the sender's spool began, in Unix milliseconds; a new spool is a new epoch.
    pub epoch: i64,
    /// Number of the batch within the epoch, counting up; 0 means "not numbered": such a batch
    /// counts again when it is sent again.
    pub seq: u64,
    /// The sender's clock when it sent the batch, in Unix milliseconds; 0 when not given.
    pub sent: i64,
    /// Definitions of refs that the daemon may not know yet.
    pub series: Vec<SeriesDefinition>,
    /// The series of each sample.
    pub refs: Vec<u32>,
    /// Unix milliseconds: one per sample, or a single one for all.
    pub times: Vec<i64>,
    /// One value per sample.
    pub values: Vec<f64>,
    /// Since when counters count, in Unix milliseconds: one per sample, a single one for all, or
    /// none when not known.
    pub starts: Vec<i64>,
}
