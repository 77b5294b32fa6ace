//! The time range in which the store already contains samples of a series. Imports request this
//! range before they send samples.
//!
//! Must never know: HTTP, the caller.

use std::{collections::BTreeMap, ops::Range};

use serde::{Deserialize, Serialize};

use crate::{
    model::{Granularity, GranularityIndex, SeriesId, SeriesKey, SeriesLimits, UnixMillis},
    policy::coverage::Coverage,
    query::{Budget, QueryError, cells::coverage::coverage},
    store::{Columns, Slot, Store},
};

/// Maximum number of series in a request.
pub const COVERED_SERIES_MAX: usize = 500;
/// Maximum number of slots to read per series.
const SLOTS_MAX: i64 = 4096;
/// Limits for parsing keys, wider than any limits of the settings.
const LIMITS: SeriesLimits =
    SeriesLimits { tags_max: 1024, name_bytes_max: 16_384, value_bytes_max: 65_536 };

/// A request for the stored time ranges of some series.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoverageRequest {
    /// The series, each with a time range.
    pub series: Vec<RequestedSeries>,
}

/// A series and a time range.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedSeries {
    metric: String,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    /// The first time, Unix milliseconds.
    start: i64,
    /// The last time, Unix milliseconds.
    end: i64,
}

/// The stored time ranges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverageAnswer {
    /// The first and the last stored time within the range of each requested series, in the order
    /// of the request, in Unix milliseconds; `None` when the store has no samples in the range.
    pub held: Vec<Option<(i64, i64)>>,
}

impl RequestedSeries {
    fn id(&self, store: &Store) -> Option<SeriesId> {
        let tags = self.tags.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let key = SeriesKey::new(&self.metric, tags, &LIMITS).ok()?;
        store.dictionary().find(&key)
    }
}

/// Finds the stored time ranges of some series. For long ranges, coarse slots are read, and the
/// time between the first and the last sample of a slot counts as stored.
///
/// # Errors
/// When the request has too many series, the budget is used up, or the store cannot be read.
pub fn series_coverage(
    store: &Store,
    budget: &Budget,
    request: &CoverageRequest,
    now: UnixMillis,
) -> Result<CoverageAnswer, QueryError> {
    if request.series.len() > COVERED_SERIES_MAX {
        let message = format!("more than {COVERED_SERIES_MAX} series; ask for fewer at a time");
        return Err(QueryError::TooMuch(message));
    }
    let mut held = vec![None; request.series.len()];
    let known = request.series.iter().enumerate();
    let known = known.filter(|(_, requested)| requested.start <= requested.end);
    let known: Vec<_> = known
        .filter_map(|(position, requested)| Some((position, requested, requested.id(store)?)))
        .collect();
    let start = known.iter().map(|(_, requested, _)| requested.start).min();
    let end = known.iter().map(|(_, requested, _)| requested.end).max();
    let (Some(start), Some(end)) = (start, end) else { return Ok(CoverageAnswer { held }) };
    let range = UnixMillis(start).max(UnixMillis::MIN)
        ..UnixMillis(end).min(UnixMillis::MAX.minus(1)).plus(1);
    if range.is_empty() {
        return Ok(CoverageAnswer { held });
    }
    let ids: Vec<_> = known.iter().map(|(.., id)| *id).collect();
    let coverage = coverage(store, &ids, &range, now);
    let mut filled = Vec::new();
    for interval in coverage.intervals(finest(&coverage, &range), range) {
        let view = store.view(interval.stored, interval.range.clone(), &ids)?;
        for (position, requested, id) in &known {
            budget.check()?;
            view.slots_into(*id, Columns::ALL, &mut filled)?;
            let requested = requested.start..=requested.end;
            let found = filled.iter().filter(|slot| !slot.cell.is_empty()).map(times);
            for (first, last) in
                found.filter(|(first, last)| first <= requested.end() && last >= requested.start())
            {
                let (first, last) = (first.max(*requested.start()), last.min(*requested.end()));
                let (earliest, latest) = held[*position].unwrap_or((first, last));
                held[*position] = Some((earliest.min(first), latest.max(last)));
            }
        }
    }
    Ok(CoverageAnswer { held })
}

/// Returns the finest granularity whose number of slots is within the limit.
fn finest(coverage: &Coverage<'_>, range: &Range<UnixMillis>) -> GranularityIndex {
    let all = coverage.granularities();
    let length = range.end.since(range.start);
    let fits = |(_, granularity): &(usize, &Granularity)| length / granularity.width_ms < SLOTS_MAX;
    let index = all.iter().enumerate().find(fits).map_or(all.count() - 1, |(index, _)| index);
    GranularityIndex(index)
}

/// Returns the times of the first and the last sample of a slot.
fn times(slot: &Slot) -> (i64, i64) {
    let at = |offset: u32| slot.start.0 + i64::from(offset);
    (at(slot.cell.first_at), at(slot.cell.last_at))
}
