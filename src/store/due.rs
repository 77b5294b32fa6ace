//! The time from which a document is due, so that a checkpoint writes it, and the time at which a
//! checkpoint finds the most cells due.
//!
//! Must never know: documents, what runs a checkpoint.

use crate::model::{Granularity, UnixMillis};

/// The delay of writing documents after the end of their period; at most the length of a period.
/// Most late samples arrive within this time, so that documents need no patches.
const LATENESS_MS: i64 = 120_000;

/// Returns the time before which documents must begin to be due.
pub(crate) fn due_before(granularity: &Granularity, now: UnixMillis) -> UnixMillis {
    let current = granularity.document_start(now);
    let before = granularity.document_start(now.minus(LATENESS_MS));
    // When documents are shorter than the wait, waiting for one period is enough.
    before.max(granularity.document_start(current.minus(1)))
}

/// The delay of a checkpoint after documents become due, because timers and the clock differ.
const MARGIN_MS: i64 = 1000;

/// Returns the milliseconds from `now` until a checkpoint that runs at least once in an interval.
/// If documents are no longer than the interval, it runs when some have just become due: then most
/// cells move into documents directly and not through the head.
pub(crate) fn checkpoint_after(finest: &Granularity, now: UnixMillis, interval_ms: i64) -> i64 {
    let delay = LATENESS_MS + MARGIN_MS;
    let due = finest.document_start(now.plus(interval_ms).minus(delay)).plus(delay);
    let is_short = finest.document.longest_ms() <= interval_ms;
    // A timer may fire early by a part of the margin: these documents are due already.
    if is_short && due.0 - now.0 > MARGIN_MS { due.0 - now.0 } else { interval_ms }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Span;

    const MINUTE_MS: i64 = 60_000;

    #[test]
    fn a_checkpoint_runs_when_short_documents_become_due_and_at_least_once_in_an_interval() {
        let level = |document: i64| {
            let hour = Span::Fixed(60 * MINUTE_MS);
            Granularity::new(10_000, Span::Fixed(document * MINUTE_MS), hour, hour)
        };
        let after = |document, minute: i64, interval: i64| {
            checkpoint_after(&level(document), UnixMillis(minute * MINUTE_MS), interval * MINUTE_MS)
        };
        let delay = LATENESS_MS + MARGIN_MS;
        assert_eq!(after(10, 101, 10), MINUTE_MS + delay - 2 * MINUTE_MS);
        assert_eq!(after(10, 103, 10), 7 * MINUTE_MS + delay);
        // The next one follows after exactly one interval.
        let first = UnixMillis(110 * MINUTE_MS + delay);
        assert_eq!(checkpoint_after(&level(10), first, 10 * MINUTE_MS), 10 * MINUTE_MS);
        // Also when the first one ran a little early.
        for early in [1, 250, MARGIN_MS] {
            let first = first.minus(early);
            assert_eq!(checkpoint_after(&level(10), first, 10 * MINUTE_MS), 10 * MINUTE_MS);
        }
        assert_eq!(after(60, 101, 10), 10 * MINUTE_MS);
        for minute in 100..200 {
            assert!((1..=25 * MINUTE_MS).contains(&after(10, minute, 25)));
            assert!(after(10, minute, 25) > 15 * MINUTE_MS);
        }
    }
}
