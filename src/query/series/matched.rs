//! The series that match a set of matchers.
//!
//! Must never know: expressions, values.

use std::sync::Arc;

use crate::{
    model::{METRIC_TAG, SeriesId, SeriesInfo, SeriesKey},
    query::{
        ExpressionLimits, MatchOperator, QueryError, SeriesMatcher,
        budget::cache::{MatchingSeries, Selection},
        series::{labels::Labels, selector::CHUNK},
    },
    store::{Matcher, Store},
};

/// Sets of matchers; a series must match all matchers of one set.
type MatcherSets = Vec<Vec<SeriesMatcher>>;

/// Returns the series that match all matchers, in order of their IDs, with their metadata.
///
/// The dictionary is locked for a few hundred series at a time.
///
/// # Errors
/// When more than `series_max` series match, the query times out, or its memory is used up.
pub fn select_series(
    store: &Store,
    matchers: &[SeriesMatcher],
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<(SeriesId, SeriesInfo)>, QueryError> {
    let candidates = candidates(store, matchers, limits)?;
    let ids = matching_series(store, &candidates, limits, |key| key_matches(key, matchers))?;
    let mut found = Vec::with_capacity(ids.len());
    for chunk in ids.chunks(CHUNK) {
        check_time(limits)?;
        limits.reserve(chunk.len() * size_of::<(SeriesId, SeriesInfo)>())?;
        let dictionary = store.dictionary();
        found.extend(chunk.iter().filter_map(|id| Some((*id, dictionary.info(*id)?))));
    }
    Ok(found)
}

/// Returns the series that match all matchers of any set, in order of their IDs. `text` identifies
/// the sets in the cache. If the result is cached, only series that were created since it was
/// computed are compared.
///
/// # Errors
/// See [`select_series`].
pub(crate) fn select_cached(
    store: &Store,
    text: &str,
    sets: &dyn Fn() -> Result<MatcherSets, QueryError>,
    limits: &ExpressionLimits<'_>,
) -> Result<MatchingSeries, QueryError> {
    let (generation, count) = {
        let dictionary = store.dictionary();
        (dictionary.generation(), dictionary.id_count())
    };
    let queries_cache = limits.budget.cache();
    let known = queries_cache.and_then(|cache| cache.selection(text));
    let known =
        known.filter(|selection| selection.generation == generation && selection.compared <= count);
    let found = match known {
        Some(known) if known.compared == count => {
            check_count(known.matched.ids.len(), limits)?;
            return Ok(known.matched);
        }
        // A selection is reused only when comparing the new series costs less than a full search.
        Some(known) if count - known.compared <= known.matched.ids.len().max(CHUNK) => {
            let new: Vec<_> = (known.compared..count).map(|id| SeriesId(id as u32)).collect();
            let sets = sets()?;
            let fulfil = |key: &SeriesKey| sets.iter().any(|set| key_matches(key, set));
            let new = matching_series(store, &new, limits, fulfil)?;
            if new.is_empty() {
                check_count(known.matched.ids.len(), limits)?;
                known.matched
            } else {
                let before = known.matched.ids.iter().copied();
                with_label_positions(store, before.chain(new).collect(), limits)?
            }
        }
        _ => {
            let mut found = Vec::new();
            for set in sets()? {
                let candidates = candidates(store, &set, limits)?;
                found.extend(matching_series(store, &candidates, limits, |key| {
                    key_matches(key, &set)
                })?);
            }
            found.sort_unstable();
            found.dedup();
            // Series that were created in the meantime may or may not be included.
            found.truncate(found.partition_point(|id| (id.0 as usize) < count));
            with_label_positions(store, found.into(), limits)?
        }
    };
    if let Some(queries_cache) = queries_cache {
        let selection = Selection { generation, compared: count, matched: found.clone() };
        queries_cache.keep_selection(text, selection);
    }
    Ok(found)
}

/// Returns the series in order of their IDs, with their positions in label order. Comparing labels
/// takes longer than reading a few slots of each series.
fn with_label_positions(
    store: &Store,
    ids: Arc<[SeriesId]>,
    limits: &ExpressionLimits<'_>,
) -> Result<MatchingSeries, QueryError> {
    check_count(ids.len(), limits)?;
    limits.reserve(ids.len() * size_of::<u32>())?;
    let before = limits.budget.reserved();
    let mut labels = Vec::with_capacity(ids.len());
    for chunk in ids.chunks(CHUNK) {
        check_time(limits)?;
        limits.reserve(chunk.len() * (size_of::<Option<Labels>>() + size_of::<u32>()))?;
        let dictionary = store.dictionary();
        labels.extend(chunk.iter().map(|id| dictionary.key(*id).cloned().map(Labels::of_key)));
    }
    let mut order: Vec<u32> = (0..ids.len() as u32).collect();
    order.sort_by(|left, right| labels[*left as usize].cmp(&labels[*right as usize]));
    let mut positions = vec![0; ids.len()];
    for (position, index) in (0..).zip(order) {
        positions[index as usize] = position;
    }
    drop(labels);
    limits.budget.shrink_to(before);
    Ok(MatchingSeries { ids, positions: positions.into() })
}

fn key_matches(key: &SeriesKey, matchers: &[SeriesMatcher]) -> bool {
    matchers.iter().all(|matcher| matcher.matches_key(key))
}

/// Returns the series whose keys match.
fn matching_series(
    store: &Store,
    candidates: &[SeriesId],
    limits: &ExpressionLimits<'_>,
    matches: impl Fn(&SeriesKey) -> bool,
) -> Result<Vec<SeriesId>, QueryError> {
    let mut found = Vec::new();
    for chunk in candidates.chunks(CHUNK) {
        check_time(limits)?;
        let before = found.len();
        let dictionary = store.dictionary();
        found.extend(chunk.iter().filter(|id| dictionary.key(**id).is_some_and(&matches)));
        drop(dictionary);
        check_count(found.len(), limits)?;
        limits.reserve((found.len() - before) * size_of::<SeriesId>())?;
    }
    Ok(found)
}

fn check_count(count: usize, limits: &ExpressionLimits<'_>) -> Result<(), QueryError> {
    let series_max = limits.series_max;
    if count <= series_max {
        return Ok(());
    }
    Err(QueryError::TooMuch(format!(
        "more than {series_max} series match: name more labels or raise limits.query_points_max"
    )))
}

/// Returns a superset of the matching series. When a matcher requires a value, the index finds
/// them; otherwise the values of one required tag are compared; without a required tag, all series
/// are returned.
fn candidates(
    store: &Store,
    matchers: &[SeriesMatcher],
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<SeriesId>, QueryError> {
    let equal: Vec<_> = matchers
        .iter()
        .filter_map(|matcher| match &matcher.operator {
            MatchOperator::Equal(value) if !value.is_empty() => {
                Some(Matcher { tag: matcher.tag.clone(), value: value.clone() })
            }
            MatchOperator::Equal(_)
            | MatchOperator::NotEqual(_)
            | MatchOperator::Pattern(_)
            | MatchOperator::NotPattern(_) => None,
        })
        .collect();
    let present = matchers.iter().filter(|matcher| !matcher.matches(""));
    let by_values = present.min_by_key(|matcher| matcher.tag != METRIC_TAG);
    let Some(matcher) = by_values.filter(|_| equal.is_empty()) else {
        return Ok(store.dictionary().select(&equal));
    };
    let mut ids = Vec::new();
    let mut after: Option<Box<str>> = None;
    loop {
        check_time(limits)?;
        let values = store.dictionary().values_after(&matcher.tag, after.as_deref(), CHUNK);
        let matching: Vec<_> = values.iter().filter(|value| matcher.matches(value)).collect();
        let dictionary = store.dictionary();
        for value in matching {
            ids.extend(dictionary.with_tag(&matcher.tag, value));
        }
        drop(dictionary);
        let Some(last) = values.into_iter().next_back() else { break };
        after = Some(last);
    }
    ids.sort_unstable();
    Ok(ids)
}

fn check_time(limits: &ExpressionLimits<'_>) -> Result<(), QueryError> {
    if limits.budget.check().is_err() {
        return Err(QueryError::Timeout(
            "query timed out while selecting series: add label matchers or raise \
             limits.query_timeout"
                .to_owned(),
        ));
    }
    Ok(())
}
