//! Refused samples: counts, and examples with messages.

use std::collections::BTreeMap;

use granary_protocol::{IngestAnswer, InvalidSamples, Refusal};

use crate::policy::RefusalReason;

/// The maximum number of refused samples that a response shows.
const EXAMPLES_MAX: usize = 10;

/// The refused parts of a request, with the reasons.
#[derive(Debug, Default)]
pub struct Refusals {
    /// The number of samples by reason.
    pub counts: BTreeMap<RefusalReason, u64>,
    /// The number of points with refused samples, for protocols whose points have several samples.
    pub points: u64,
    examples: Vec<Refusal>,
}

impl Refusals {
    /// Adds one refused sample; `describe` returns the series and the message, and is called only
    /// when needed.
    pub fn add(&mut self, reason: RefusalReason, describe: impl FnOnce() -> (String, String)) {
        *self.counts.entry(reason).or_default() += 1;
        if self.examples.len() < EXAMPLES_MAX {
            let (series, message) = describe();
            self.examples.push(Refusal { reason: reason.as_str().to_owned(), series, message });
        }
    }

    /// Adds several refused samples with one message.
    pub fn add_many(
        &mut self,
        reason: RefusalReason,
        count: u64,
        message: impl FnOnce() -> String,
    ) {
        if count > 0 {
            *self.counts.entry(reason).or_default() += count;
            if self.examples.len() < EXAMPLES_MAX {
                self.explain(reason, message());
            }
        }
    }

    /// Adds a message without counting a sample.
    pub fn explain(&mut self, reason: RefusalReason, message: String) {
        if self.examples.len() < EXAMPLES_MAX {
            let series = String::new();
            self.examples.push(Refusal { reason: reason.as_str().to_owned(), series, message });
        }
    }

    /// Adds samples that could not be decoded.
    pub fn add_invalid(&mut self, invalid: InvalidSamples) {
        if invalid.samples > 0 {
            *self.counts.entry(RefusalReason::BadSample).or_default() += invalid.samples;
            let room = EXAMPLES_MAX.saturating_sub(self.examples.len());
            self.examples.extend(invalid.examples.into_iter().take(room));
        }
    }

    /// Returns all samples of a batch, refused for one reason.
    pub fn of_batch(reason: RefusalReason, samples: u64) -> Self {
        let example = Refusal {
            reason: reason.as_str().to_owned(),
            series: "the whole batch".to_owned(),
            message: reason.remedy().to_owned(),
        };
        Self { counts: BTreeMap::from([(reason, samples)]), points: 0, examples: vec![example] }
    }

    /// Returns true when everything was refused because of the batch's number.
    pub fn is_for_batch_number(&self) -> bool {
        let numbers = [RefusalReason::StaleNumber, RefusalReason::FarNumber];
        numbers.iter().any(|reason| self.counts.contains_key(reason))
    }

    /// Returns true when there are neither refusals nor messages.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.examples.is_empty()
    }

    /// Returns examples with messages.
    pub fn examples(&self) -> &[Refusal] {
        &self.examples
    }

    /// Returns the number of refused samples.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Adds the refusals to a response.
    pub fn report(self, answer: &mut IngestAnswer) {
        for (reason, count) in self.counts {
            *answer.refused.entry(reason.as_str().to_owned()).or_default() += count;
        }
        let room = EXAMPLES_MAX.saturating_sub(answer.examples.len());
        answer.examples.extend(self.examples.into_iter().take(room));
    }
}
