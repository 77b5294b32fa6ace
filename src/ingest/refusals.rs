//! Refused samples, counted, with a few of them in words.

use std::collections::BTreeMap;

use granary_protocol::{IngestAnswer, Refusal, Unread};

use crate::policy::RefusalReason;

/// Refused samples that an answer shows.
const EXAMPLES_MAX: usize = 10;

/// What of a request was refused, and why.
#[derive(Debug, Default)]
pub struct Refusals {
    /// How many, by reason.
    pub counts: BTreeMap<RefusalReason, u64>,
    /// How many points have refused samples, of a protocol whose points have several.
    pub points: u64,
    examples: Vec<Refusal>,
}

impl Refusals {
    /// Adds one; `describe` gives the series and the message, and is called only when needed.
    pub fn add(&mut self, reason: RefusalReason, describe: impl FnOnce() -> (String, String)) {
        *self.counts.entry(reason).or_default() += 1;
        if self.examples.len() < EXAMPLES_MAX {
            let (series, message) = describe();
            self.examples.push(Refusal { reason: reason.as_str().to_owned(), series, message });
        }
    }

    /// Adds several with one message.
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

    /// Shows a message without counting a sample.
    pub fn explain(&mut self, reason: RefusalReason, message: String) {
        if self.examples.len() < EXAMPLES_MAX {
            let series = String::new();
            self.examples.push(Refusal { reason: reason.as_str().to_owned(), series, message });
        }
    }

    /// Adds samples that could not be read.
    pub fn add_unread(&mut self, unread: Unread) {
        if unread.samples > 0 {
            *self.counts.entry(RefusalReason::BadSample).or_default() += unread.samples;
            let room = EXAMPLES_MAX.saturating_sub(self.examples.len());
            self.examples.extend(unread.examples.into_iter().take(room));
        }
    }

    /// All samples of a batch, refused for one reason.
    pub fn of_batch(reason: RefusalReason, samples: u64) -> Self {
        let example = Refusal {
            reason: reason.as_str().to_owned(),
            series: "the whole batch".to_owned(),
            message: reason.remedy().to_owned(),
        };
        Self { counts: BTreeMap::from([(reason, samples)]), points: 0, examples: vec![example] }
    }

    /// Whether it is the batch's number for which all is refused.
    pub fn is_for_number(&self) -> bool {
        let numbers = [RefusalReason::StaleNumber, RefusalReason::FarNumber];
        numbers.iter().any(|reason| self.counts.contains_key(reason))
    }

    /// Whether there is nothing refused and nothing explained.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.examples.is_empty()
    }

    /// A few of them in words.
    pub fn examples(&self) -> &[Refusal] {
        &self.examples
    }

    /// Samples refused.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Adds these to an answer.
    pub fn report(self, answer: &mut IngestAnswer) {
        for (reason, count) in self.counts {
            *answer.refused.entry(reason.as_str().to_owned()).or_default() += count;
        }
        let room = EXAMPLES_MAX.saturating_sub(answer.examples.len());
        answer.examples.extend(self.examples.into_iter().take(room));
    }
}
