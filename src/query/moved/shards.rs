//! The series that moved in a store with several shards: each shard ranks its series over the same
//! slots, and the best of all are ranked.
//!
//! First, each shard counts its series, because a shard without series has no answer, unless all
//! shards have none. Must never know: where the shards are.

use serde::{Deserialize, Serialize};

use super::{MovedAnswer, MovedRequest, active_series, ranked};
use crate::{
    model::UnixMillis,
    query::{Budget, QueryError, QueryLimits},
    store::Store,
};

/// A step of a ranking of all shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MovedStep {
    /// Each shard counts its series.
    Count,
    /// Each shard ranks its series.
    Rank {
        /// The number of series of all shards.
        total: usize,
        /// The resolution.
        resolution: String,
    },
}

/// The answer of a shard to a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MovedPart {
    /// The number of series with samples.
    series: usize,
    /// The ranking; `None` for a step that only counts, or without series.
    ranked: Option<MovedAnswer>,
}

impl MovedPart {
    /// Returns the width of the slots in milliseconds, 0 without a series that moved.
    fn width_ms(&self) -> i64 {
        let first = self.ranked.as_ref().and_then(|ranked| ranked.series.first());
        let points = first.map_or(&[][..], |series| &series.points);
        points.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)).max().unwrap_or_default()
    }
}

/// Answers a step for one shard.
///
/// # Errors
/// See [`super::moved`].
pub fn moved_step(
    store: &Store,
    budget: &Budget,
    (request, step): (&MovedRequest, &MovedStep),
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<MovedPart, QueryError> {
    let times = request.times(now)?;
    let ids = active_series(store, budget, &request.selector, times.before)?;
    let series = ids.len();
    let ranked = match step {
        MovedStep::Rank { total, resolution } if series > 0 || *total == 0 => {
            let Ok(resolution) = resolution.parse();
            Some(ranked((store, budget), (request, ids, &resolution), times, limits, now)?)
        }
        MovedStep::Count | MovedStep::Rank { .. } => None,
    };
    Ok(MovedPart { series, ranked })
}

/// Asks all shards for a step, and returns their answers in the order of shards.
type AskStep<'a> = dyn Fn(&MovedStep) -> Result<Vec<MovedPart>, QueryError> + 'a;

/// Ranks the series of all shards, which `ask` asks for a step. When the shards choose several
/// resolutions, all use the coarsest one. A series of two shards is two series.
///
/// # Errors
/// When a shard does not answer, or the budget is used up.
pub fn moved_of_shards(
    request: &MovedRequest,
    ask: &AskStep<'_>,
) -> Result<MovedAnswer, QueryError> {
    let total = ask(&MovedStep::Count)?.iter().map(|part| part.series).sum();
    let rank = |resolution: String| ask(&MovedStep::Rank { total, resolution });
    let mut parts = rank("auto".to_owned())?;
    let resolution_of = |part: &MovedPart| Some(part.ranked.as_ref()?.resolution.clone());
    let coarsest = parts.iter().max_by_key(|part| part.width_ms()).and_then(resolution_of);
    let is_other = |part: &MovedPart| part.ranked.is_some() && resolution_of(part) != coarsest;
    if let Some(coarsest) = coarsest.clone().filter(|_| parts.iter().any(is_other)) {
        parts = rank(coarsest)?;
    }
    let mut ranked = parts.into_iter().filter_map(|part| part.ranked);
    let missing = || QueryError::Busy("the series of a shard have changed; retry".to_owned());
    let mut whole = ranked.next().ok_or_else(missing)?;
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
