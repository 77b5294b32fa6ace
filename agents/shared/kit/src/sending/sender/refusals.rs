//! Rate-limited log lines about refused samples.

use std::time::Duration;

use granary_protocol::IngestAnswer;
use tracing::warn;

use crate::clock::Stopwatch;

/// The minimum time between two log lines.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Refused samples since the last log line.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    last_logged: Option<Stopwatch>,
    samples: u64,
}

impl Refusals {
    /// Counts the refused samples of an answer, and logs them when a line is due.
    pub(super) fn log(&mut self, refused: u64, answer: &IngestAnswer) {
        self.samples += refused;
        let is_due =
            self.last_logged.is_none_or(|last_logged| last_logged.elapsed() > LOG_INTERVAL);
        if refused == 0 || !is_due {
            return;
        }
        let examples: Vec<String> = answer
            .examples
            .iter()
            .map(|e| format!("{}: {}: {}", e.series, e.reason, e.message))
            .collect();
        let samples = std::mem::take(&mut self.samples);
        self.last_logged = Some(Stopwatch::start());
        let reasons = &answer.refused;
        warn!(samples, ?reasons, ?examples, "the daemon refused samples; they are not sent again");
    }
}
