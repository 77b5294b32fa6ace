//! One sample of an answer, and what is wrong with an answer.

use crate::Families;

/// A line is cut into labels as a whole: a longer one is refused.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;

/// A sample as an exporter shows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample<'a> {
    /// Name and labels, as [`crate::parts`] reads them: the same bytes are the same series.
    pub series: &'a [u8],
    /// The value.
    pub value: f64,
    /// When it was measured, in Unix milliseconds, if the exporter says so.
    pub time_ms: Option<i64>,
    /// Since when it counts, in Unix milliseconds, if the exporter says so.
    pub start_ms: Option<i64>,
}

/// What is wrong with an answer, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Fault {
    /// Where in the answer, such as `line 7`.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
}

impl Fault {
    pub(crate) fn new(place: String, problem: impl Into<String>) -> Self {
        Self { place, problem: problem.into() }
    }
}

/// What takes the samples.
pub(crate) type Take<'a> = dyn FnMut(Sample<'_>, &Families) -> Result<(), String> + 'a;
