//! Preallocation: the passes over the live series that are due, and the documents of a request.
//!
//! The shells of the next document period are inserted when half of the current one has passed, and
//! again at 90 % of it, for series that began in between.

use std::ops::Range;

use crate::model::{Granularity, Moment, Span, UnixMillis};

/// A pass over the live series of one granularity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassDue {
    /// Start of the next document period.
    pub document: UnixMillis,
    /// True for the second pass of the period.
    pub is_last: bool,
}

/// Returns the time since which a series must have been seen to be live: within the last two
/// document spans of the finest granularity.
pub fn live_since(finest: &Granularity, now: UnixMillis) -> UnixMillis {
    let current = finest.document_start(now);
    finest.document_start(current.minus(1))
}

/// Returns the pass that must have been made by `now`; `None` in the first half of a period, and
/// while the clock is doubted.
pub fn pass_due(granularity: &Granularity, now: impl Into<Moment>) -> Option<PassDue> {
    let now = Some(now.into()).filter(|now| !now.is_doubted())?.clock;
    let current = granularity.document_start(now);
    let document = granularity.document.next(current);
    let (passed, period) = (now.0 - current.0, document.0 - current.0);
    let is_last = passed >= period / 10 * 9;
    (passed >= period / 2).then_some(PassDue { document, is_last })
}

/// The reason why documents of a request are not preallocated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpansRefusal {
    /// Retention would drop the documents at once.
    #[error(
        "{granularity} is kept for {retention}: retention has dropped documents before {kept_from}; \
         use a later start, or name other resolutions"
    )]
    Dropped {
        /// The name of the granularity.
        granularity: String,
        /// The retention of the granularity.
        retention: Span,
        /// The start of the oldest document that is kept.
        kept_from: UnixMillis,
    },
    /// The documents begin later than retention would keep them from now on.
    #[error(
        "{granularity} is kept for {retention}: documents after {until} are too far ahead; use an \
         earlier end, or name other resolutions"
    )]
    TooFarAhead {
        /// The name of the granularity.
        granularity: String,
        /// The retention of the granularity.
        retention: Span,
        /// The time from which documents are too far ahead.
        until: UnixMillis,
    },
}

/// Returns the starts of the documents of a granularity that overlap a range, ascending, and at
/// most `count_max` of them. All are within the retention before or after `now`.
///
/// # Errors
/// When a document is beyond the retention.
pub fn spans(
    granularity: &Granularity,
    range: &Range<UnixMillis>,
    now: UnixMillis,
    count_max: usize,
) -> Result<Vec<UnixMillis>, SpansRefusal> {
    let (name, retention) = (granularity.name.clone(), granularity.retention());
    let kept_from = granularity.document_start(granularity.kept_from(now));
    if granularity.document_start(range.start) < kept_from {
        return Err(SpansRefusal::Dropped { granularity: name, retention, kept_from });
    }
    let until = now.plus(retention.longest_ms());
    if range.end > until {
        return Err(SpansRefusal::TooFarAhead { granularity: name, retention, until });
    }
    let first = granularity.document_start(range.start);
    let all = std::iter::successors(Some(first), |start| Some(granularity.document.next(*start)));
    Ok(all.take_while(|start| *start < range.end).take(count_max).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GranularitySet;

    const HOUR: UnixMillis = UnixMillis(1_763_683_200_000);
    const MINUTE_MS: i64 = 60_000;

    #[test]
    fn a_pass_is_due_at_the_half_of_a_period_and_at_nine_tenths() {
        let set = GranularitySet::default();
        let minute = &set.as_slice()[0];
        let due = |minutes: i64| {
            let due = pass_due(minute, HOUR.plus(minutes * MINUTE_MS))?;
            assert_eq!(due.document, HOUR.plus(60 * MINUTE_MS));
            Some(due.is_last)
        };
        assert_eq!([due(0), due(29), due(30)], [None, None, Some(false)]);
        assert_eq!([due(53), due(54), due(59)], [Some(false), Some(true), Some(true)]);
        let at = HOUR.plus(30 * MINUTE_MS);
        assert_eq!(live_since(minute, at), HOUR.minus(60 * MINUTE_MS));
        assert_eq!(pass_due(minute, Moment { clock: at, believed: HOUR }), None);
    }

    #[test]
    fn a_request_gets_whole_documents_within_the_retention() {
        let set = GranularitySet::default();
        let minute = &set.as_slice()[0];
        let hours = |from: i64, to: i64| {
            let range = HOUR.plus(from * 60 * MINUTE_MS + 1)..HOUR.plus(to * 60 * MINUTE_MS);
            spans(minute, &range, HOUR, usize::MAX).map(|starts| {
                starts.into_iter().map(|at| (at.0 - HOUR.0) / 60 / MINUTE_MS).collect::<Vec<_>>()
            })
        };
        assert_eq!(hours(1, 3), Ok(vec![1, 2]));
        assert_eq!(hours(-1, 1), Ok(vec![-1, 0]));
        assert_eq!(hours(-3, 48).map(|starts| starts.len()), Ok(51));
        let refused = |from, to| hours(from, to).unwrap_err().to_string();
        let expected = "1m is kept for 2d: documents after 2025-11-23T00:00:00Z are too far ahead";
        assert!(refused(1, 49).starts_with(expected), "{}", refused(1, 49));
        assert!(refused(-100, 1).contains("has dropped documents before"), "{}", refused(-100, 1));
    }
}
