//! A sample of a response, and the fault of an invalid response.

use granary_histogram::Histogram;

use crate::Families;

/// The maximum length of a line, which is parsed as a whole.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;

/// A sample of an exporter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample<'a> {
    /// Name and labels as text for [`crate::parts`]: equal bytes mean equal series.
    pub series: &'a [u8],
    /// The value; for a native histogram, its number of observations.
    pub value: f64,
    /// The timestamp in Unix milliseconds, if the exporter provides one.
    pub time_ms: Option<i64>,
    /// The start time of a counter in Unix milliseconds, if the exporter provides one.
    pub start_ms: Option<i64>,
    /// The native histogram of a series of histograms.
    pub histogram: Option<&'a Histogram>,
}

/// The fault of a response, with its location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {problem}")]
pub struct Fault {
    /// The location in the response, such as `line 7`.
    pub location: String,
    /// The problem.
    pub problem: String,
}

impl Fault {
    pub(crate) fn new(location: String, problem: impl Into<String>) -> Self {
        Self { location, problem: problem.into() }
    }
}

/// The consumer of samples.
pub(crate) type SampleSink<'a> = dyn FnMut(Sample<'_>, &Families) -> Result<(), String> + 'a;
