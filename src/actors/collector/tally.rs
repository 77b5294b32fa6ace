//! Statistics of ingest for people: accepted samples by sender, and examples of refused samples.
//!
//! Both are bounded: by the number of senders, and by protocols and reasons. Must never know: the
//! causes of refusals, HTTP.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

use foldhash::fast::RandomState;
use parking_lot::Mutex;

use crate::{
    ingest::refusals::Refusals,
    model::{ProjectName, UnixMillis},
    policy::RefusalReason,
    telemetry::Protocol,
};

/// The number of examples per protocol and reason; the newest are kept.
const EXAMPLES_MAX: usize = 3;
/// The maximum length of an example, in characters.
const TEXT_CHARS_MAX: usize = 300;
/// The maximum number of senders whose samples are counted; later senders are not counted.
const SENDERS_MAX: usize = 100_000;

/// The counts since the start, and examples. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct IngestTally {
    state: Arc<TallyState>,
    /// The project of the counted senders.
    project: ProjectName,
}

#[derive(Debug, Default)]
struct TallyState {
    /// The examples by protocol and reason.
    refused: Mutex<BTreeMap<(&'static str, &'static str), VecDeque<RefusedSample>>>,
    /// The accepted samples by sender; clients choose their names.
    accepted: Mutex<HashMap<Box<str>, SenderSamples, RandomState>>,
}

/// The accepted samples of a sender since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderSamples {
    /// The number of samples.
    pub samples: u64,
    /// The arrival of the last sample.
    pub at: UnixMillis,
}

/// A refused sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedSample {
    /// The time of the refusal.
    pub at: UnixMillis,
    /// The series, if known, and the reason, shortened and without characters that could control a
    /// terminal.
    pub text: String,
}

impl IngestTally {
    /// Returns a tally that counts the senders of a project, and shares all counts.
    pub fn for_project(&self, project: &ProjectName) -> Self {
        Self { state: self.state.clone(), project: project.clone() }
    }

    /// Returns the accepted samples of a sender, by its stored name; `None` without any, or for a
    /// sender that is not counted.
    pub fn samples_of(&self, sender: &str) -> Option<SenderSamples> {
        self.state.accepted.lock().get(sender).copied()
    }

    /// Returns the latest samples that a protocol refused for a reason, the newest first.
    pub fn refused(&self, protocol: &str, reason: &str) -> Vec<RefusedSample> {
        let refused = self.state.refused.lock();
        let found = refused.iter().find(|(key, _)| **key == (protocol, reason));
        found.map_or_else(Vec::new, |(_, examples)| examples.iter().cloned().collect())
    }

    pub(super) fn accept(&self, sender: &str, samples: u64, at: UnixMillis) {
        if samples == 0 {
            return;
        }
        let stored = (!self.project.is_default()).then(|| self.project.stored_name(sender));
        let sender = stored.as_deref().unwrap_or(sender);
        let mut accepted = self.state.accepted.lock();
        if let Some(known) = accepted.get_mut(sender) {
            *known = SenderSamples { samples: known.samples + samples, at };
        } else if accepted.len() < SENDERS_MAX {
            accepted.insert(sender.into(), SenderSamples { samples, at });
        }
    }

    pub(super) fn refuse(
        &self,
        protocol: Protocol,
        refused: &Refusals,
        now: impl Fn() -> UnixMillis,
    ) {
        if refused.examples().is_empty() {
            return;
        }
        let at = now();
        let new_examples = refused.examples().iter().filter_map(|refusal| {
            let reason =
                RefusalReason::ALL.iter().find(|known| known.as_str() == refusal.reason)?;
            let text = match refusal.series.as_str() {
                "" => shortened(&refusal.message),
                series => shortened(&format!("{}: {}", shortened(series), refusal.message)),
            };
            Some((reason.as_str(), RefusedSample { at, text }))
        });
        let new_examples: Vec<_> = new_examples.collect();
        let mut all = self.state.refused.lock();
        for (reason, example) in new_examples {
            let examples = all.entry((protocol.as_str(), reason)).or_default();
            examples.truncate(EXAMPLES_MAX - 1);
            examples.push_front(example);
        }
    }
}

/// Returns a text of limited length in which control characters, and characters that change the
/// direction of the text, are escaped.
fn shortened(text: &str) -> String {
    let reorders = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut out = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == TEXT_CHARS_MAX {
            out.push('…');
            break;
        }
        if c.is_control() || reorders(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_examples_are_kept_shortened_and_escaped() {
        let tally = IngestTally::default();
        let reason = RefusalReason::ALL[0];
        for n in 0..5 {
            let mut refused = Refusals::default();
            refused.add(reason, || (format!("m{n}{{a=\"\u{1b}\u{202e}\"}}"), "é".repeat(10_000)));
            tally.refuse(Protocol::Json, &refused, || UnixMillis(n));
        }
        let examples = tally.refused("json", reason.as_str());
        let times: Vec<_> = examples.iter().map(|example| example.at.0).collect();
        assert_eq!(times, [4, 3, 2]);
        let text = &examples[0].text;
        assert!(text.starts_with("m4{a=\"\\u{1b}\\u{202e}\"}: é") && text.ends_with('…'), "{text}");
        assert_eq!(text.chars().count() - 1, TEXT_CHARS_MAX);
        assert_eq!(tally.refused("otlp", reason.as_str()), []);
    }

    #[test]
    fn accepted_samples_are_counted_by_sender() {
        let tally = IngestTally::default();
        tally.accept("a", 3, UnixMillis(1));
        tally.accept("a", 4, UnixMillis(2));
        tally.accept("b", 0, UnixMillis(3));
        let expected = SenderSamples { samples: 7, at: UnixMillis(2) };
        assert_eq!(tally.samples_of("a"), Some(expected));
        assert_eq!(tally.samples_of("b"), None);
    }
}
