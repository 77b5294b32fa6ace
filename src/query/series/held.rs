//! The times that the store holds of some series, which an import asks for before it sends samples.
//!
//! Must never know: HTTP, who asks.

use std::{collections::BTreeMap, ops::Range};

use serde::{Deserialize, Serialize};

use crate::{
    model::{Granularity, GranularityIndex, SeriesId, SeriesKey, SeriesLimits, UnixMillis},
    policy::coverage::Coverage,
    query::{Budget, QueryError, cells::coverage::coverage},
    store::{Columns, Slot, Store},
};

/// Series of one request, at most.
pub const HELD_SERIES_MAX: usize = 500;
/// Slots of a series that are read, at most.
const SLOTS_MAX: i64 = 4096;
/// Wide limits: the store has no series beyond those of the settings.
const LIMITS: SeriesLimits =
    SeriesLimits { tags_max: 1024, name_bytes_max: 16_384, value_bytes_max: 65_536 };

/// A request for the times of some series.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldRequest {
    /// The series, each with a range of times.
    pub series: Vec<AskedSeries>,
}

/// A series and a range of times.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedSeries {
    metric: String,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    /// The first time, Unix milliseconds.
    start: i64,
    /// The last time, Unix milliseconds.
    end: i64,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldAnswer {
    /// Of each series, in the order asked, the first and the last time within the range that the
    /// store holds, Unix milliseconds; nothing when it holds none.
    pub held: Vec<Option<(i64, i64)>>,
}

impl AskedSeries {
    fn id(&self, store: &Store) -> Option<SeriesId> {
        let tags = self.tags.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let key = SeriesKey::new(&self.metric, tags, &LIMITS).ok()?;
        store.dictionary().find(&key)
    }
}

/// Looks for the samples of some series. Where the ranges are long, coarse slots answer: samples
/// between a slot's first and last are taken to be there.
///
/// # Errors
/// When too many series are asked for, the budget is used up, or the store cannot be read.
pub fn held(
    store: &Store,
    budget: &Budget,
    request: &HeldRequest,
    now: UnixMillis,
) -> Result<HeldAnswer, QueryError> {
    if request.series.len() > HELD_SERIES_MAX {
        let message = format!("more than {HELD_SERIES_MAX} series; ask for fewer at a time");
        return Err(QueryError::TooMuch(message));
    }
    let mut held = vec![None; request.series.len()];
    let known = request.series.iter().enumerate();
    let known = known.filter(|(_, own)| own.start <= own.end);
    let known: Vec<_> =
        known.filter_map(|(place, own)| Some((place, own, own.id(store)?))).collect();
    let start = known.iter().map(|(_, own, _)| own.start).min();
    let end = known.iter().map(|(_, own, _)| own.end).max();
    let (Some(start), Some(end)) = (start, end) else { return Ok(HeldAnswer { held }) };
    let range = UnixMillis(start).max(UnixMillis::MIN)
        ..UnixMillis(end).min(UnixMillis::MAX.minus(1)).plus(1);
    if range.is_empty() {
        return Ok(HeldAnswer { held });
    }
    let ids: Vec<_> = known.iter().map(|(.., id)| *id).collect();
    let coverage = coverage(store, &range, now);
    let mut filled = Vec::new();
    for segment in coverage.segments(finest(&coverage, &range), range) {
        let view = store.view(segment.stored, segment.range.clone(), &ids)?;
        for (place, own, id) in &known {
            budget.check()?;
            view.slots_into(*id, Columns::ALL, &mut filled)?;
            let own = own.start..=own.end;
            let found = filled.iter().filter(|slot| !slot.cell.is_empty()).map(times);
            for (first, last) in
                found.filter(|(first, last)| first <= own.end() && last >= own.start())
            {
                let (first, last) = (first.max(*own.start()), last.min(*own.end()));
                let (earliest, latest) = held[*place].unwrap_or((first, last));
                held[*place] = Some((earliest.min(first), latest.max(last)));
            }
        }
    }
    Ok(HeldAnswer { held })
}

/// The finest granularity that has no more slots than may be read.
fn finest(coverage: &Coverage<'_>, range: &Range<UnixMillis>) -> GranularityIndex {
    let all = coverage.granularities();
    let length = range.end.since(range.start);
    let fits = |(_, own): &(usize, &Granularity)| length / own.width_ms < SLOTS_MAX;
    let index = all.iter().enumerate().find(fits).map_or(all.count() - 1, |(index, _)| index);
    GranularityIndex(index)
}

/// Times of the first and the last sample of a slot.
fn times(slot: &Slot) -> (i64, i64) {
    let at = |offset: u32| slot.start.0 + i64::from(offset);
    (at(slot.cell.first_at), at(slot.cell.last_at))
}
