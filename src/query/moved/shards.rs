//! The series that moved in a store with several shards: each shard ranks its series over the same
//! slots, and the best of all are ranked.
//!
//! The answers of shards without series are ignored, unless all shards have none. Must never know:
//! where the shards are.

use serde::{Deserialize, Serialize};

use super::{MovedAnswer, MovedRequest, active_series, ranked};
use crate::{
    model::UnixMillis,
    query::{Budget, ErrorOfShard, QueryError, QueryLimits, messages::changed_series},
    store::Store,
};

/// The answer of a shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MovedPart {
    /// The number of series with samples.
    series: usize,
    /// The ranking. A shard without series may be unable to rank them, for example because it is
    /// new and has no samples of the stretch.
    ranked: Result<MovedAnswer, ErrorOfShard>,
}

impl MovedPart {
    /// Returns the width of the slots in milliseconds, 0 without a series that moved.
    fn width_ms(&self) -> i64 {
        let first = self.ranked.as_ref().ok().and_then(|ranked| ranked.series.first());
        let points = first.map_or(&[][..], |series| &series.points);
        points.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)).max().unwrap_or_default()
    }
}

/// Ranks the series of one shard.
///
/// # Errors
/// See [`super::moved`].
pub fn moved_of_shard(
    store: &Store,
    budget: &Budget,
    (request, resolution): (&MovedRequest, &str),
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<MovedPart, QueryError> {
    let times = request.times(now)?;
    let ids = active_series(store, budget, &request.selector, times.before)?;
    let series = ids.len();
    let Ok(resolution) = resolution.parse();
    match ranked((store, budget), (request, ids, &resolution), times, limits, now) {
        Err(cause) if series == 0 => Ok(MovedPart { series, ranked: Err((&cause).into()) }),
        ranked => Ok(MovedPart { series, ranked: Ok(ranked?) }),
    }
}

/// Asks all shards to rank their series with a resolution, and returns their answers in the order
/// of shards.
type AskShards<'a> = dyn Fn(&str) -> Result<Vec<MovedPart>, QueryError> + 'a;

/// Ranks the series of all shards, which `ask` asks with a resolution. When the shards choose
/// several resolutions, all use the coarsest one. A series of two shards is two series.
///
/// # Errors
/// When a shard does not answer, or the budget is used up.
pub fn moved_of_shards(
    request: &MovedRequest,
    ask: &AskShards<'_>,
) -> Result<MovedAnswer, QueryError> {
    let mut parts = counted(ask("auto")?);
    let resolution_of = |part: &MovedPart| Some(part.ranked.as_ref().ok()?.resolution.clone());
    let coarsest = parts.iter().max_by_key(|part| part.width_ms()).and_then(resolution_of);
    let is_other = |part: &MovedPart| part.ranked.is_ok() && resolution_of(part) != coarsest;
    if let Some(coarsest) = coarsest.clone().filter(|_| parts.iter().any(is_other)) {
        parts = counted(ask(&coarsest)?);
    }
    let mut ranked = Vec::new();
    for part in parts {
        ranked.push(part.ranked?);
    }
    let mut ranked = ranked.into_iter();
    let mut whole = ranked.next().ok_or_else(changed_series)?;
    for other in ranked {
        whole.compared += other.compared;
        whole.moved += other.moved;
        whole.series.extend(other.series);
        whole.notes.extend(other.notes);
    }
    whole.series.sort_by(|one, other| other.score.total_cmp(&one.score));
    whole.series.truncate(request.top);
    let mut notes: Vec<String> = Vec::new();
    for note in whole.notes {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    Ok(MovedAnswer { notes, ..whole })
}

/// Returns the parts of shards with series, or all parts if no shard has series.
fn counted(mut parts: Vec<MovedPart>) -> Vec<MovedPart> {
    if parts.iter().any(|part| part.series > 0) {
        parts.retain(|part| part.series > 0);
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::{query::Selector, setup::NOW};

    fn part(series: usize, resolution: &str) -> MovedPart {
        let answer = MovedAnswer {
            resolution: resolution.to_owned(),
            before: 0,
            start: 1,
            end: 2,
            compared: series,
            moved: 0,
            series: Vec::new(),
            notes: vec![format!("note of {resolution}")],
        };
        MovedPart { series, ranked: Ok(answer) }
    }

    fn refused(message: &str) -> MovedPart {
        let cause = QueryError::Invalid(message.to_owned());
        MovedPart { series: 0, ranked: Err((&cause).into()) }
    }

    #[test]
    fn shards_without_series_are_ignored_unless_all_have_none() {
        let asked = RefCell::new(Vec::new());
        let of_parts = |parts: &[MovedPart]| {
            let request = MovedRequest::new(Selector::default(), UnixMillis(0)..NOW, None).unwrap();
            moved_of_shards(&request, &|resolution| {
                asked.borrow_mut().push(resolution.to_owned());
                Ok(parts.to_vec())
            })
        };
        let found = of_parts(&[refused("too short"), part(0, "1h"), part(3, "1m")]).unwrap();
        assert_eq!((&*found.resolution, found.compared), ("1m", 3));
        assert_eq!(found.notes, ["note of 1m"]);
        assert_eq!(of_parts(&[part(0, "1m"), part(0, "1m")]).unwrap().compared, 0);
        let cause = of_parts(&[part(0, "1m"), refused("too short")]).unwrap_err();
        assert!(matches!(&cause, QueryError::Invalid(text) if text == "too short"), "{cause}");
        // One question is enough.
        assert_eq!(*asked.borrow(), ["auto"; 3]);
    }
}
