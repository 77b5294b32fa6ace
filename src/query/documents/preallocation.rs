//! Preallocation on request: the documents of matching series over a range of time.
//!
//! Must never know: HTTP, the series for which the daemon preallocates by itself.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{
    model::{GranularityIndex, UnixMillis},
    policy::preallocation::spans,
    query::{QueryError, Selector, series::suggestion},
    store::Store,
};

/// Maximum number of documents of a request: series times spans.
const PREALLOCATED_MAX: usize = 1_000_000;
/// Maximum number of spans of a request, each of which is one commit.
const SPANS_MAX: usize = 1000;

/// A request to preallocate documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreallocateRequest {
    /// The series.
    pub selector: Selector,
    /// The time range; documents that overlap it are inserted whole.
    pub range: Range<UnixMillis>,
    /// Names of granularities; all of them when empty.
    pub resolutions: Vec<String>,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PreallocateAnswer {
    /// Number of matching series.
    pub series: usize,
    /// Number of documents that are new.
    pub inserted: usize,
    /// Number of documents that existed, preallocated or with samples.
    pub existed: usize,
    /// The documents of each granularity.
    pub resolutions: Vec<PreallocatedLevel>,
}

/// The documents of a granularity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreallocatedLevel {
    /// Name of the granularity.
    pub resolution: String,
    /// Start of the first document, Unix ms.
    pub start: i64,
    /// End of the last document, Unix ms.
    pub end: i64,
    /// Number of documents that are new.
    pub inserted: usize,
    /// Number of documents that existed.
    pub existed: usize,
}

/// Preallocates documents; a repeated request inserts nothing.
///
/// # Errors
/// When no series matches, a resolution is unknown, a document is beyond the retention, the request
/// is too large, or a partition cannot be written: then some documents may be inserted.
pub fn preallocate(
    store: &Store,
    request: &PreallocateRequest,
    now: UnixMillis,
) -> Result<PreallocateAnswer, QueryError> {
    let series = store.dictionary().select(&request.selector.matchers());
    if series.is_empty() {
        let note = suggestion::note(store, &request.selector);
        return Err(QueryError::Invalid(note.unwrap_or_else(|| "no series matches".to_owned())));
    }
    let mut levels = Vec::new();
    for index in requested_granularities(store, &request.resolutions)? {
        let spans = spans(store.granularity(index), &request.range, now, SPANS_MAX + 1)
            .map_err(|cause| QueryError::Invalid(cause.to_string()))?;
        levels.push((index, spans));
    }
    check_size(series.len(), levels.iter().map(|(_, spans)| spans.len()).sum())?;
    let mut answer = PreallocateAnswer { series: series.len(), ..PreallocateAnswer::default() };
    for (index, spans) in levels {
        let (mut inserted, mut kept) = (0, 0);
        for start in &spans {
            inserted += store.preallocate(index, *start, &series)?;
            kept += store.count_kept(index, *start, &series);
        }
        let granularity = store.granularity(index);
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else { continue };
        // A rule of retention may leave out the resolution for some of the series.
        let existed = kept.saturating_sub(inserted);
        answer.inserted += inserted;
        answer.existed += existed;
        answer.resolutions.push(PreallocatedLevel {
            resolution: granularity.name.clone(),
            start: first.0,
            end: granularity.document.next(*last).0,
            inserted,
            existed,
        });
    }
    Ok(answer)
}

/// Returns the granularities of a request, finest first.
fn requested_granularities(
    store: &Store,
    names: &[String],
) -> Result<Vec<GranularityIndex>, QueryError> {
    let all = store.granularities();
    let known = |name: &&String| all.indexed().any(|(_, granularity)| granularity.name == **name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let known: Vec<_> =
            all.indexed().map(|(_, granularity)| granularity.name.as_str()).collect();
        let known = known.join(", ");
        let message = format!("resolution {unknown:?} is unknown; use one of {known}");
        return Err(QueryError::Invalid(message));
    }
    let is_requested = |name: &String| names.is_empty() || names.contains(name);
    let found = all.indexed().filter(|(_, granularity)| is_requested(&granularity.name));
    Ok(found.map(|(index, _)| index).collect())
}

fn check_size(series: usize, spans: usize) -> Result<(), QueryError> {
    let documents = series.saturating_mul(spans);
    if spans > SPANS_MAX || documents > PREALLOCATED_MAX {
        return Err(QueryError::TooMuch(format!(
            "{documents} documents ({series} series, {spans} spans) are too many: a request \
             preallocates at most {PREALLOCATED_MAX} documents and {SPANS_MAX} spans; use a \
             shorter range, fewer series or fewer resolutions"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_bounded_by_documents_and_by_spans() {
        check_size(PREALLOCATED_MAX / SPANS_MAX, SPANS_MAX).unwrap();
        for (series, spans) in
            [(1, SPANS_MAX + 1), (PREALLOCATED_MAX / 2 + 1, 2), (usize::MAX, usize::MAX)]
        {
            assert!(matches!(check_size(series, spans), Err(QueryError::TooMuch(_))));
        }
    }
}
