//! The time from which a document is due, so that a checkpoint writes it.
//!
//! Must never know: documents, when a checkpoint runs.

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
