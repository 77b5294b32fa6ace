//! Invalid samples of JSON batches: their number, and examples.

use crate::Refusal;

/// The maximum number of reported invalid samples of a batch.
const EXAMPLES_MAX: usize = 10;

/// The invalid samples of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InvalidSamples {
    /// The number of invalid samples.
    pub samples: u64,
    /// Examples of invalid samples.
    pub examples: Vec<Refusal>,
}

impl InvalidSamples {
    /// The reason in all examples.
    pub const REASON: &str = "bad_sample";

    pub(super) fn add(&mut self, describe: impl FnOnce() -> (String, String)) {
        self.samples += 1;
        if self.examples.len() < EXAMPLES_MAX {
            let (series, message) = describe();
            self.examples.push(Refusal { reason: Self::REASON.to_owned(), series, message });
        }
    }
}
